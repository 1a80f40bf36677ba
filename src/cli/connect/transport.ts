/**
 * How requests of `svcctl` reach the service, and one HTTP request. It uses `node:http`, whose agents support client
 * certificates and proxies, through `getBuiltinModule`: an import would also evaluate undici, which takes longer than
 * the rest of most verbs.
 */
import type { Agent, IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { CliFailure } from '../output/exit-codes.ts';

export interface ServiceRequest {
  readonly method: string;
  /** Starts at the root of the service: `/api/slots`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The response is read as it arrives, without a timeout between its parts. */
  readonly stream?: true;
  /** For a model, which may have to be loaded before it answers: the response may come at any time. */
  readonly inference?: true;
}

export interface ServiceResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** Reads the whole body. Can be called once. */
  text(): Promise<string>;
  /** The body as it arrives, as text or as bytes. Can be read once. */
  readonly body: AsyncIterable<string>;
  readonly bytes: AsyncIterable<Buffer>;
}

export interface Transport {
  /** The service in messages: `"http://127.0.0.1:8080"`. */
  readonly service: string;
  /** Set for a service in a cluster. */
  readonly namespace?: string;
  /** Hint for answers that cannot come from the service. */
  readonly hint: string;
  /** Interval of polling; longer through an API server, which serves others too. */
  readonly pollMs: number;
  /** Fails with a `CliFailure` if no response arrives. */
  send(request: ServiceRequest): Promise<ServiceResponse>;
}

/** No response of the management API waits for a load, so a later one will not arrive. */
const RESPONSE_TIMEOUT_MS = 30_000;

export interface HttpTarget {
  /** `https://10.0.0.1:443`, without a slash at the end. */
  readonly server: string;
  readonly agent?: Agent | undefined;
  /** Path of a socket to connect to, instead of the host and port of the server. */
  readonly socketPath?: string | undefined;
  /** Returns the failure to report if no complete response arrives. */
  failure(reason: string, cause: unknown): CliFailure;
}

export async function sendHttp(
  { server, agent, socketPath, failure }: HttpTarget,
  { method, path, headers, body, stream, inference }: ServiceRequest,
): Promise<ServiceResponse> {
  const fail = (cause: unknown): CliFailure => failure(REASONS[codeOf(cause) ?? ''] ?? messageOf(cause), cause);
  const { request } = process.getBuiltinModule(server.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const sent = request(`${server}${path}`, {
      method,
      headers: { accept: 'application/json', 'user-agent': 'svcctl', ...headers },
      ...(agent === undefined ? {} : { agent }),
      ...(socketPath === undefined ? {} : { socketPath }),
    });
    const timer = setTimeout(() => sent.destroy(new Error(`no response within ${RESPONSE_TIMEOUT_MS / 1000} s`)), RESPONSE_TIMEOUT_MS);
    if (inference === true) clearTimeout(timer);
    // Also handles errors after the response has begun: without a listener, a reset connection would end the program.
    sent.on('error', (cause) => {
      clearTimeout(timer);
      reject(fail(cause));
    });
    sent.once('response', (response) => {
      if (stream === true) clearTimeout(timer);
      response.once('close', () => clearTimeout(timer));
      resolve({
        status: response.statusCode ?? 500,
        header: (name) => response.headers[name]?.toString(),
        text: async () => text(response).catch((cause: unknown) => Promise.reject(fail(cause))),
        body: textsOf(response, fail),
        bytes: partsOf(response, fail),
      });
    });
    sent.end(body);
  });
}

async function* textsOf(response: IncomingMessage, fail: (cause: unknown) => CliFailure): AsyncGenerator<string> {
  response.setEncoding('utf8');
  for await (const part of partsOf<string>(response, fail)) yield part;
}

async function* partsOf<Part>(response: AsyncIterable<Part>, fail: (cause: unknown) => CliFailure): AsyncGenerator<Part> {
  try {
    yield* response;
  } catch (cause) {
    throw fail(cause);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'unknown host name',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
};
