/**
 * HTTP to the API server: keep-alive connections, time limits, responses as a whole or as a stream. Uses `node:https`: requests with undici take a
 * sixth less CPU time, but loading it takes 20 MB of RAM, and 2,000 slots cause few requests.
 */
import { Agent as HttpAgent, request as requestHttp, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Access, Credentials, TlsOptions } from './credentials.ts';
import type { Refusal } from './decide/parse-refusal.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { readBody } from '../../platform/read-body.ts';
import { createSemaphore } from '../../platform/semaphore.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path on the server. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Accepts a compressed response. API servers compress those above 128 KiB, to a tenth of their size; they never compress watches. */
  readonly mayCompress?: boolean;
}

interface KubeHttpOptions {
  readonly credentials: Credentials;
  readonly userAgent: string;
  /** For a whole exchange. For a stream, until its first byte. */
  readonly timeoutMs: number;
}

/** For one object, decompressed. No API server sends more. */
const ANSWER_LIMIT_BYTES = 128 * 1024 * 1024;
/** A whole list may take longer than another exchange. API servers end such requests after a minute. */
const LIST_SHARE = 2;
/** Load balancers close connections that have been idle for about a minute. */
const IDLE_MS = 30_000;
/** After this time, Node has the kernel probe the connection ten times, once a second: a peer that vanished is detected after 25 s without traffic. */
const KEEP_ALIVE_MS = 15_000;
/** A keep-alive connection may be dead without notice: a GET that receives nothing on it for this share of its timeout is repeated on a new connection. */
const KEPT_SHARE = 1 / 3;

interface Exchange {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

type Receive<T> = (exchange: Exchange) => Promise<T> | T;

export function createKubeHttp({ credentials, userAgent, timeoutMs }: KubeHttpOptions) {
  const base = new URL(credentials.server);
  const prefix = base.pathname === '/' ? '' : base.pathname;
  const isPlain = base.protocol === 'http:';
  let agents: { readonly tls: TlsOptions; readonly agent: HttpAgent } | undefined;

  function agentOf({ tls, agent }: Access): HttpAgent {
    if (agent !== undefined) return agent;
    if (agents?.tls !== tls) {
      const options = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxFreeSockets: 16, timeout: IDLE_MS };
      agents = { tls, agent: isPlain ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls }) };
    }
    return agents.agent;
  }

  function createRequest(
    { method, path, body, contentType, mayCompress }: HttpRequest,
    { headers }: Access,
    options: RequestOptions,
  ): ClientRequest {
    const all: Record<string, string> = { ...headers, accept: 'application/json', 'user-agent': userAgent };
    if (mayCompress === true) all['accept-encoding'] = 'gzip';
    if (body !== undefined) {
      all['content-type'] = contentType ?? 'application/json';
      all['content-length'] = String(Buffer.byteLength(body));
    }
    return (isPlain ? requestHttp : requestHttps)(`${base.origin}${prefix}${path}`, { ...options, method, headers: all });
  }

  /** Resolves with the head of the response; rejects if none is received. */
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

  async function attempt<T>(request: HttpRequest, signal: AbortSignal, receive: Receive<T>): Promise<Result<T> | 'stale'> {
    const limitMs = request.mayCompress === true ? timeoutMs * LIST_SHARE : timeoutMs;
    return await withTimeout(limitMs, signal, async (limited) => {
      let sent: ClientRequest | undefined;
      try {
        const access = await Promise.race([credentials.access().catch(unusable), rejectOnAbort(limited)]);
        const agent = agentOf(access);
        sent = createRequest(request, access, { agent, signal: limited });
        return ok(await receive(await send(sent, request.body, agent)));
      } catch (error) {
        if (sent?.reusedSocket === true && !limited.aborted && STALE.has(codeOf(error))) return 'stale';
        if (signal.aborted) return fail('retry', 'Aborted', 'The request was aborted');
        return unreachable(credentials.server, error, limited.aborted ? limitMs : undefined);
      }
    });
  }

  /** The server may close a keep-alive connection just when it is used again. A read can be repeated; a write may have been carried out. */
  async function attemptTwice<T>(request: HttpRequest, signal: AbortSignal, receive: Receive<T>): Promise<Result<T>> {
    const first = await attempt(request, signal, receive);
    const last = first === 'stale' && request.method === 'GET' ? await attempt(request, signal, receive) : first;
    return last === 'stale' ? fail('retry', 'ApiUnreachable', `The API server at "${credentials.server}" closed the connection`) : last;
  }

  return {
    /** A failure means that no complete response was received. A response with an error status is a success here. */
    exchange: async (request: HttpRequest, signal: AbortSignal): Promise<Result<Refusal>> =>
      await attemptTwice(request, signal, async ({ response }) => await readAnswer(response)),
    /** Passes the body of a successful response on while it arrives, decompressed. `consume` is called again if the request has to be repeated. */
    read: async <T>(path: string, signal: AbortSignal, consume: (body: AsyncIterable<Uint8Array>) => Promise<T>) =>
      await attemptTwice(
        { method: 'GET', path, mayCompress: true },
        signal,
        async ({ response }): Promise<Refusal & { readonly consumed?: { readonly value: T } }> => {
          const { statusCode: status = 500 } = response;
          return status < 300
            ? { status, retryAfter: undefined, text: '', consumed: { value: await consume(decompressed(response)) } }
            : await readAnswer(response);
        },
      ),
    /** The stream is undefined if the response has an error status. It throws when the connection breaks, and ends when the signal aborts. */
    open: async (path: string, signal: AbortSignal): Promise<Result<Refusal & { readonly stream?: AsyncIterable<Uint8Array> }>> =>
      await attemptTwice({ method: 'GET', path }, signal, async (exchange) => {
        const { statusCode: status = 500 } = exchange.response;
        return status < 300
          ? { status, retryAfter: undefined, text: '', stream: streamOf(exchange, signal) }
          : await readAnswer(exchange.response);
      }),
  };
}

async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Aborted')), { once: true }));
}

/** Ends when the signal aborts, even if nobody is reading. */
function streamOf({ request, response }: Exchange, signal: AbortSignal): AsyncIterable<Uint8Array> {
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

async function readAnswer(response: IncomingMessage): Promise<Refusal> {
  return {
    status: response.statusCode ?? 500,
    retryAfter: response.headers['retry-after'],
    text: await readBody(decompressed(response), ANSWER_LIMIT_BYTES),
  };
}

/** The caller limits how much it reads, since a few compressed bytes may become very many. Throws if the encoding is not known. */
function decompressed(response: IncomingMessage): AsyncIterable<Uint8Array> {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return response;
  if (encoding !== 'gzip') throw new Error(`The response has the encoding "${encoding.slice(0, 40)}", which was not asked for`);
  // An error of either stream ends both, and is thrown to the caller.
  return pipeline(response, createGunzip(), () => undefined);
}

const SILENT = 'SILENT';
const silenceError = (): Error => Object.assign(new Error('Nothing was received on a keep-alive connection'), { code: SILENT });

/** The other idle connections are as old as the one that failed: they would fail the next requests one by one. */
function closeIdleConnections({ freeSockets }: HttpAgent): void {
  for (const sockets of Object.values(freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', SILENT]);
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|ERR_TLS|ERR_SSL|EPROTO/;

/** The output of a credential plugin may contain secrets, so it is not part of the error. */
function unusable(): never {
  throw new Error(NO_CREDENTIALS);
}

const NO_CREDENTIALS = 'no credentials';

function unreachable(server: string, error: unknown, timedOutMs: number | undefined): Result<never> {
  const failed = (message: string): Result<never> => fail('retry', 'ApiUnreachable', message);
  if (timedOutMs !== undefined) return failed(`The API server at "${server}" did not respond within ${timedOutMs / 1000} s`);
  const message = messageOf(error);
  if (message === NO_CREDENTIALS) {
    const hint = `Check the credentials for "${server}": they cannot be obtained; run "kubectl get --raw /readyz" to see why`;
    return fail('retry', 'Unauthorized', hint);
  }
  const code = codeOf(error);
  if (UNTRUSTED.test(code)) {
    return fail('retry', 'ApiUntrusted', `Check the certificates for "${server}": no trusted connection is possible (${code})`);
  }
  if (code === '') return failed(`The connection to the API server at "${server}" failed: ${message}`);
  return failed(`Check that the API server at "${server}" is running and can be reached: ${code}`);
}

/** Time limits for requests. */

/**
 * Gives a request its own signal, which aborts when the outer signal aborts or after `timeoutMs`. Leaves no listener on the outer signal, which
 * may live as long as the process.
 */
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

/** Limits how many requests run at the same time. The others wait in order. Resolves with undefined if the signal aborts during the wait. */
type RequestGate = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T | undefined>;

export function createRequestGate(limit: number): RequestGate {
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
