/** HTTP clients that can misbehave. */
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: Buffer;
  readonly text: string;
  /** The connection ended before the body was complete. */
  readonly cut: boolean;
}

export type PostOptions = {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly method?: string;
};

export const CHAT = '/v1/chat/completions';

export function chatBody(more: object = {}): string {
  return JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'Hi' }], ...more });
}

/** Sends a request and reads the whole answer. */
export function post(port: number, path: string, body: string | Buffer, options: PostOptions = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...options.headers };
    const req = request({ host: '127.0.0.1', port, path, method: options.method ?? 'POST', headers, agent: false }, (res) =>
      collect(res, resolve),
    );
    req.on('error', reject);
    req.end(body);
  });
}

/** Starts a request; the test sends the body and reads the answer. */
export function begin(port: number, path: string, headers: Readonly<Record<string, string | number>>, method = 'POST'): ClientRequest {
  const req = request({
    host: '127.0.0.1',
    port,
    path,
    method,
    headers: { 'content-type': 'application/json', ...headers },
    agent: false,
  });
  req.on('error', () => undefined);
  return req;
}

export function responseOf(req: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    req.on('response', resolve);
    req.on('error', reject);
  });
}

/** Writes bytes to a fresh connection and reads until the other side closes it. */
export function raw(port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
    for (const part of parts) socket.write(part);
  });
}

export interface ContractError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly origin: string;
}

/** Parses an error of the documented shape; throws if it has another. */
export function errorOf(text: string): ContractError {
  const parsed: unknown = JSON.parse(text);
  const error: unknown = Reflect.get(Object(parsed), 'error');
  const { message, type, param, code, origin } = Object(error);
  const shaped =
    typeof message === 'string' && message !== '' && typeof type === 'string' && (origin === 'gateway' || origin === 'upstream');
  const nullable = [param, code].every((value) => value === null || typeof value === 'string');
  if (!shaped || !nullable) throw new Error(`Not an error of the documented shape: ${text}`);
  return { message, type, param, code, origin };
}

function collect(res: IncomingMessage, resolve: (reply: Reply) => void): void {
  const parts: Buffer[] = [];
  res.on('data', (part: Buffer) => parts.push(part));
  res.on('error', () => undefined);
  res.on('close', () => {
    const bytes = Buffer.concat(parts);
    resolve({ status: res.statusCode ?? 0, headers: res.headers, bytes, text: bytes.toString('utf8'), cut: !res.complete });
  });
}
