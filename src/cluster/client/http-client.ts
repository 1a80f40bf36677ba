/** HTTP to the API server. Uses `node:https`, since the proxies of a kubeconfig are its agents. */
import {
  Agent as HttpAgent,
  request as requestHttp,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Access, Credentials, TlsOptions } from './ports.ts';
import type { Refusal } from './decide/parse-refusal.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { readBody } from '../../platform/read-body.ts';
import { createSemaphore } from '../../platform/semaphore.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** API servers compress responses above 128 KiB, to a tenth; they never compress watches. */
  readonly mayCompress?: boolean;
}

interface KubeHttpOptions {
  readonly credentials: Credentials;
  readonly userAgent: string;
  /** Limit of a whole exchange; for a stream, until its first byte. */
  readonly timeoutMs: number;
}

/** Limit of one decompressed object. No API server sends more. */
const ANSWER_LIMIT_BYTES = 128 * 1024 * 1024;
/** A whole list may take longer than another exchange. API servers end such requests after a minute. */
const LIST_SHARE = 2;
/** Load balancers close connections that have been idle for about a minute. */
const IDLE_MS = 30_000;
/** Then the kernel probes the connection ten times, once a second: a peer that vanished is detected after 25 s. */
const KEEP_ALIVE_MS = 15_000;
/** A GET that receives nothing on a kept connection for this share of its timeout is repeated on a new one. */
const KEPT_SHARE = 1 / 3;

export type Answer<T> = Refusal & { readonly received?: { readonly value: T } };

interface Exchange {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

type Receive<T> = (exchange: Exchange) => Promise<T> | T;

export function createKubeHttp({ credentials, userAgent, timeoutMs }: KubeHttpOptions) {
  const base = new URL(credentials.server);
  const prefix = base.pathname === '/' ? '' : base.pathname;
  const isPlain = base.protocol === 'http:';
  const agentOf = createAgents(isPlain, { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxFreeSockets: 16, timeout: IDLE_MS });

  function createRequest({ method, path, body, contentType, mayCompress }: HttpRequest, access: Access, options: RequestOptions) {
    const headers: Record<string, string> = { ...access.headers, accept: 'application/json', 'user-agent': userAgent };
    if (mayCompress === true) headers['accept-encoding'] = 'gzip';
    if (body !== undefined) {
      headers['content-type'] = contentType ?? 'application/json';
      headers['content-length'] = String(Buffer.byteLength(body));
    }
    return (isPlain ? requestHttp : requestHttps)(`${base.origin}${prefix}${path}`, { ...options, method, headers });
  }

  async function send(request: ClientRequest, body: string | undefined, agent: HttpAgent): Promise<Exchange> {
    const isRepeatable = request.reusedSocket && request.method === 'GET';
    const silenceTimer = isRepeatable ? setTimeout(() => request.destroy(silenceError()), timeoutMs * KEPT_SHARE) : undefined;
    try {
      return await new Promise<Exchange>((resolve, reject) => {
        request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
        request.on('error', reject);
        request.on('response', (response) => resolve({ request, response }));
        request.end(body);
      });
    } catch (error) {
      if (request.reusedSocket) closeIdleConnections(agent);
      throw error;
    } finally {
      clearTimeout(silenceTimer);
    }
  }

  async function attempt<T>(request: HttpRequest, signal: AbortSignal, receive: Receive<T>): Promise<Result<Answer<T>> | 'stale'> {
    const limitMs = request.mayCompress === true ? timeoutMs * LIST_SHARE : timeoutMs;
    return await withTimeout(limitMs, signal, async (limited) => {
      let sent: ClientRequest | undefined;
      try {
        const access = await Promise.race([credentials.access().catch(unusable), rejectOnAbort(limited)]);
        const agent = agentOf(access);
        sent = createRequest(request, access, { agent, signal: limited });
        const exchange = await send(sent, request.body, agent);
        const { statusCode: status = 500, headers } = exchange.response;
        if (status < 300) return ok({ status, retryAfter: undefined, text: '', received: { value: await receive(exchange) } });
        return ok({ status, retryAfter: headers['retry-after'], text: await readText(exchange) });
      } catch (error) {
        if (sent?.reusedSocket === true && !limited.aborted && STALE.has(codeOf(error))) return 'stale';
        if (signal.aborted) return fail('retry', 'Aborted', 'The request was aborted');
        return unreachable(credentials.server, error, limited.aborted ? limitMs : undefined);
      }
    });
  }

  /** The server may close a kept connection just when it is used. Only reads repeat: a write may have happened. */
  async function exchange<T>(request: HttpRequest, signal: AbortSignal, receive: Receive<T>): Promise<Result<Answer<T>>> {
    const first = await attempt(request, signal, receive);
    const last = first === 'stale' && request.method === 'GET' ? await attempt(request, signal, receive) : first;
    return last === 'stale' ? fail('retry', 'ApiUnreachable', `The API server at "${credentials.server}" closed the connection`) : last;
  }

  return { exchange };
}

/** The agent of a kubeconfig's proxy, or one for as long as the TLS settings stay the same: it keeps connections. */
export function createAgents(isPlain: boolean, options: AgentOptions): (access: Access) => HttpAgent {
  let latest: { readonly tls: TlsOptions; readonly agent: HttpAgent } | undefined;
  return ({ tls, agent }) => {
    if (agent !== undefined) return agent;
    if (latest?.tls !== tls) latest = { tls, agent: isPlain ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls }) };
    return latest.agent;
  };
}

export const readText = async ({ response }: Exchange): Promise<string> => await readBody(decompressed(response), ANSWER_LIMIT_BYTES);

/** The caller must limit how much it reads: a few bytes may become very many. Throws for another encoding. */
export function decompressed(response: IncomingMessage): AsyncIterable<Uint8Array> {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return response;
  if (encoding !== 'gzip') throw new Error(`The response has the encoding "${encoding.slice(0, 40)}", which was not requested`);
  // An error of either stream ends both, and is thrown to the caller.
  return pipeline(response, createGunzip(), () => undefined);
}

/** Throws when the connection breaks. Ends when the signal aborts, even if nobody is reading. */
export function streamOf({ request, response }: Exchange, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const end = (): void => void request.destroy();
  signal.addEventListener('abort', end, { once: true });
  response.once('close', () => signal.removeEventListener('abort', end));
  return read();

  async function* read(): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of response) if (chunk instanceof Uint8Array) yield chunk;
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      request.destroy();
    }
  }
}

async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Aborted')), { once: true }));
}

const SILENT = 'SILENT';
const silenceError = (): Error => Object.assign(new Error('Nothing was received on a keep-alive connection'), { code: SILENT });

/** The other idle connections are as old as the one that failed: they would fail the next requests one by one. */
function closeIdleConnections({ freeSockets }: HttpAgent): void {
  for (const sockets of Object.values(freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', SILENT]);
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|ERR_TLS|ERR_SSL|EPROTO/;
const NO_CREDENTIALS = 'no credentials';

/** The output of a credential plugin may contain secrets, so it is not part of the error. */
function unusable(): never {
  throw new Error(NO_CREDENTIALS);
}

function unreachable(server: string, error: unknown, timedOutMs: number | undefined): Result<never> {
  const failed = (message: string): Result<never> => fail('retry', 'ApiUnreachable', message);
  if (timedOutMs !== undefined) return failed(`The API server at "${server}" did not respond within ${timedOutMs / 1000} s`);
  const message = messageOf(error);
  if (message === NO_CREDENTIALS) {
    const hint = 'run "kubectl get --raw /readyz" to see why';
    return fail('retry', 'Unauthorized', `The credentials for "${server}" cannot be obtained: ${hint}`);
  }
  const code = codeOf(error);
  if (UNTRUSTED.test(code)) {
    return fail('retry', 'ApiUntrusted', `No trusted connection to "${server}" is possible (${code}): check the certificates`);
  }
  if (code === '') return failed(`The connection to the API server at "${server}" failed: ${message}`);
  return failed(`The API server at "${server}" cannot be reached (${code}): check that it is running`);
}

/** Leaves no listener on the outer signal, which may live as long as the process. */
export async function withTimeout<T>(timeoutMs: number, signal: AbortSignal, send: (limited: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await send(own.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** Resolves with undefined if the signal aborts while the request is pending. */
export function createRequestGate(limit: number): <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T | undefined> {
  const semaphore = createSemaphore(limit);
  return async (signal, work) => {
    if (!(await semaphore.acquire(signal))) return undefined;
    try {
      return await work();
    } finally {
      semaphore.release();
    }
  };
}
