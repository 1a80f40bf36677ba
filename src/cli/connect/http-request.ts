/**
 * One HTTP request to a service or to an API server. Built on `node:http`, whose agents can carry client certificates and proxies. An import of `node:http` evaluates everything that it
 * exports, also Node's WebSocket with all of undici, which takes longer than the rest of most verbs; `getBuiltinModule` does not.
 */
import type { Agent } from 'node:http';
import { text } from 'node:stream/consumers';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { CliFailure } from '../output/exit-codes.ts';
import type { ServiceRequest, ServiceResponse } from './transport.ts';

/** No response of the management API waits for a load, so one that takes longer than this will not arrive. */
const RESPONSE_TIMEOUT_MS = 30_000;

export interface HttpTarget {
  /** `https://10.0.0.1:443`, without a slash at the end. */
  readonly server: string;
  readonly agent?: Agent | undefined;
  /** Path of a socket to connect to, instead of the host and port of the server. */
  readonly socketPath?: string | undefined;
  /** The failure to report if no whole response arrives. */
  failure(reason: string, cause: unknown): CliFailure;
}

export async function sendHttp(
  { server, agent, socketPath, failure }: HttpTarget,
  { method, path, headers, body, stream }: ServiceRequest,
): Promise<ServiceResponse> {
  const fail = (cause: unknown): CliFailure => failure(reasonOf(cause), cause);
  return new Promise((resolve, reject) => {
    const url = `${server}${path}`;
    const sent = requestOf(url)(url, {
      method,
      headers: { accept: 'application/json', 'user-agent': 'svcctl', ...headers },
      ...(agent === undefined ? {} : { agent }),
      ...(socketPath === undefined ? {} : { socketPath }),
    });
    const timer = setTimeout(() => sent.destroy(new Error('no response arrived in time')), RESPONSE_TIMEOUT_MS);
    // Also catches errors after the response has begun: without a listener, a cut connection would end the program.
    sent.on('error', (cause) => {
      clearTimeout(timer);
      reject(fail(cause));
    });
    sent.once('response', (response) => {
      response.setEncoding('utf8');
      if (stream === true) clearTimeout(timer);
      response.once('close', () => clearTimeout(timer));
      resolve({
        status: response.statusCode ?? 500,
        header: (name) => response.headers[name]?.toString(),
        text: async () => text(response).catch((cause: unknown) => Promise.reject(fail(cause))),
        body: partsOf(response, fail),
      });
    });
    sent.end(body);
  });
}

function requestOf(url: string) {
  return url.startsWith('https:') ? process.getBuiltinModule('node:https').request : process.getBuiltinModule('node:http').request;
}

async function* partsOf(response: AsyncIterable<unknown>, fail: (cause: unknown) => CliFailure): AsyncGenerator<string> {
  try {
    for await (const part of response) yield String(part);
  } catch (cause) {
    throw fail(cause);
  }
}

function reasonOf(cause: unknown): string {
  switch (codeOf(cause)) {
    case 'ECONNREFUSED':
      return 'nothing listens there';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name is not known';
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the connection was cut';
    default:
      return messageOf(cause);
  }
}
