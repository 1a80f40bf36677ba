/** A server that behaves like llama.cpp as far as the gateway can notice: paths, errors, streams, the way it closes connections. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface FakeUpstream {
  readonly port: number;
  /** Requests whose complete body has arrived. */
  readonly seen: SeenRequest[];
  /** Connections accepted so far. */
  accepted(): number;
  /** Number of answers in progress. */
  busy(): number;
  /** Number of clients that disconnected before the end of the answer. */
  left(): number;
  /** Simulates a crash: closes all connections without notice and frees the port. */
  kill(): Promise<void>;
}

export type Answer = (request: SeenRequest, res: ServerResponse, socket: Socket) => void | Promise<void>;

export interface UpstreamOptions {
  readonly text?: string;
  /** Replaces the default answer. */
  readonly answer?: Answer;
  /** Called before the body is read. */
  readonly onRequest?: (req: IncomingMessage, res: ServerResponse) => void;
  /** Like cpp-httplib: closes the connection without notice after this many requests. */
  readonly requestsPerConnection?: number;
  readonly keepAliveMs?: number;
  readonly port?: number;
}

export async function startUpstream(options: UpstreamOptions = {}): Promise<FakeUpstream> {
  const seen: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const served = new Map<Socket, number>();
  let accepted = 0;
  let busy = 0;
  let left = 0;
  const server = createServer((req, res) => {
    busy += 1;
    res.on('close', () => {
      busy -= 1;
      if (!res.writableFinished) left += 1;
    });
    options.onRequest?.(req, res);
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('error', () => undefined);
    req.on('end', () => {
      const request = { method: req.method ?? '', url: req.url ?? '', headers: req.headers, body: Buffer.concat(parts) };
      seen.push(request);
      const count = (served.get(req.socket) ?? 0) + 1;
      served.set(req.socket, count);
      if (count === options.requestsPerConnection) res.on('finish', () => setImmediate(() => req.socket.destroy()));
      void (options.answer ?? defaultAnswer(options.text ?? 'The quick brown fox'))(request, res, req.socket);
    });
  });
  server.keepAliveTimeout = options.keepAliveMs ?? 5000;
  server.on('connection', (socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await listen(server, options.port ?? 0);
  return {
    port: portOf(server),
    seen,
    accepted: () => accepted,
    busy: () => busy,
    left: () => left,
    async kill() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.resetAndDestroy();
      await closed;
    },
  };
}

export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text) });
  res.end(text);
}

/** Answers with `text`, word by word if it streams; embeds everything as the same vector. */
function defaultAnswer(text: string): Answer {
  return (request, res) => {
    const body: unknown = request.body.length === 0 ? {} : JSON.parse(request.body.toString('utf8'));
    const asked = new Map(Object.entries(Object(body)));
    switch (request.url) {
      case '/v1/chat/completions':
        if (asked.get('stream') === true) streamChat(res, text, Reflect.get(Object(asked.get('stream_options')), 'include_usage') === true);
        else sendJson(res, 200, chatOf(text));
        return;
      case '/v1/embeddings':
        sendJson(res, 200, embeddingOf(asked.get('encoding_format') === 'base64'));
        return;
      case '/v1/rerank':
        sendJson(res, 200, { model: 'm', object: 'list', results: [{ index: 0, relevance_score: 0.5 }] });
        return;
      default:
        sendJson(res, 404, { error: { message: 'File Not Found', type: 'not_found_error', code: 404 } });
    }
  };
}

const USAGE = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };

function chatOf(text: string): object {
  const message = { role: 'assistant', content: text };
  return {
    choices: [{ finish_reason: 'stop', index: 0, message }],
    created: 1,
    model: 'm',
    object: 'chat.completion',
    usage: USAGE,
    id: 'chatcmpl-1',
  };
}

function streamChat(res: ServerResponse, text: string, usage: boolean): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', 'access-control-allow-origin': '*' });
  const chunk = (choices: unknown[], extra: object = {}): void => {
    res.write(
      `data: ${JSON.stringify({ choices, created: 1, id: 'chatcmpl-1', model: 'm', object: 'chat.completion.chunk', ...extra })}\n\n`,
    );
  };
  chunk([{ finish_reason: null, index: 0, delta: { role: 'assistant', content: null } }]);
  for (const word of text.split(' ')) chunk([{ finish_reason: null, index: 0, delta: { content: `${word} ` } }]);
  chunk([{ finish_reason: 'stop', index: 0, delta: {} }]);
  if (usage) chunk([], { usage: USAGE });
  res.end('data: [DONE]\n\n');
}

function embeddingOf(base64: boolean): object {
  const vector = new Float32Array([0.5, -0.25, 1]);
  const embedding = base64 ? Buffer.from(vector.buffer).toString('base64') : [...vector];
  return { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding }], usage: { prompt_tokens: 2, total_tokens: 2 } };
}

function portOf(server: Server): number {
  const address: string | AddressInfo | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server does not listen');
  return address.port;
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve());
  });
}
