/**
 * HTTP to the API server: kept connections, time limits, an answer whole or as it comes. Over `node:https`: with undici a request costs a sixth less of
 * the processor, but loading it 20 MB, and 2,000 slots make few requests.
 */
import { Agent as HttpAgent, request as requestHttp } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import type { Access, Credentials, TlsOptions } from './credentials.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { readBody } from '../../platform/read-body.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From the server's root. */
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

export interface KubeHttp {
  /** A failure means that no whole answer came; a refusal is an answer. */
  exchange(request: HttpRequest, signal: AbortSignal): Promise<Result<HttpAnswer>>;
  /** The body throws when the connection breaks, and ends when the signal aborts. */
  open(path: string, signal: AbortSignal): Promise<Result<Opened>>;
}

export type Opened =
  | { readonly kind: 'open'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'refused'; readonly answer: HttpAnswer };

export interface KubeHttpOptions {
  readonly credentials: Credentials;
  readonly userAgent: string;
  /** For an exchange; for a stream, until its first byte. */
  readonly timeoutMs: number;
}

/** A page of a list has some MB, with the largest objects there are some hundred; more is no API server's. */
const ANSWER_LIMIT_BYTES = 128 * 1024 * 1024;
/** Load balancers close connections that are idle for a minute or so. */
const IDLE_MS = 30_000;
/** Node then has the kernel ask every second, ten times: a peer that has vanished is noticed after 25 s without any traffic. */
const KEEP_ALIVE_MS = 15_000;
/** A kept connection may have died without a word: a read that hears nothing on it for this part of its time is asked again on a new one. */
const KEPT_SHARE = 1 / 3;

interface Sent {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

export function createKubeHttp({ credentials, userAgent, timeoutMs }: KubeHttpOptions): KubeHttp {
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

  /** Resolves with the head of the answer; rejects when none comes. */
  async function send(asked: HttpRequest, limit: Limit): Promise<Sent> {
    const access = await Promise.race([credentials.access().catch(unusable), limit.over]);
    const headers: Record<string, string> = { ...access.headers, accept: 'application/json', 'user-agent': userAgent };
    if (asked.body !== undefined) {
      headers['content-type'] = asked.contentType ?? 'application/json';
      headers['content-length'] = String(Buffer.byteLength(asked.body));
    }
    const agent = agentOf(access);
    const request = (isPlain ? requestHttp : requestHttps)(`${base.origin}${prefix}${asked.path}`, {
      method: asked.method,
      agent,
      headers,
    });
    limit.covers(request);
    const repeatable = request.reusedSocket && asked.method === 'GET';
    const patience = repeatable ? setTimeout(() => request.destroy(silence()), timeoutMs * KEPT_SHARE) : undefined;
    try {
      return await new Promise<Sent>((resolve, reject) => {
        request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
        request.on('error', reject);
        request.on('response', (response) => resolve({ request, response }));
        request.end(asked.body);
      });
    } catch (error) {
      if (request.reusedSocket) forgetKept(agent);
      throw error;
    } finally {
      clearTimeout(patience);
    }
  }

  async function attempt<T>(
    asked: HttpRequest,
    signal: AbortSignal,
    receive: (sent: Sent) => Promise<T> | T,
  ): Promise<Result<T> | 'stale'> {
    const limit = createLimit(signal, timeoutMs);
    try {
      return ok(await receive(await send(asked, limit)));
    } catch (error) {
      if (limit.reused() && !limit.isOver() && STALE.has(codeOf(error))) return 'stale';
      return noAnswer(credentials.server, error, signal, limit.isOver() ? timeoutMs : undefined);
    } finally {
      limit.release();
    }
  }

  /** The server may close a kept connection just when it is used again. A read can be repeated; a write may have been carried out. */
  async function attemptTwice<T>(asked: HttpRequest, signal: AbortSignal, receive: (sent: Sent) => Promise<T> | T): Promise<Result<T>> {
    const first = await attempt(asked, signal, receive);
    if (first !== 'stale') return first;
    const second = asked.method === 'GET' ? await attempt(asked, signal, receive) : first;
    return second === 'stale' ? fail('retry', 'ApiUnreachable', `The API server at "${credentials.server}" closed the connection`) : second;
  }

  return {
    exchange: async (asked, signal) => await attemptTwice(asked, signal, async ({ response }) => await readAnswer(response)),
    open: async (path, signal) =>
      await attemptTwice<Opened>({ method: 'GET', path }, signal, async (sent) =>
        (sent.response.statusCode ?? 500) < 300
          ? { kind: 'open', body: streamOf(sent, signal) }
          : { kind: 'refused', answer: await readAnswer(sent.response) },
      ),
  };
}

interface Limit {
  /** Rejects when the signal aborts or the time is over. */
  readonly over: Promise<never>;
  /** Breaks this request off then, too. */
  covers(request: ClientRequest): void;
  isOver(): boolean;
  /** Whether the request went out on a connection that was used before. */
  reused(): boolean;
  release(): void;
}

function createLimit(signal: AbortSignal, timeoutMs: number): Limit {
  const own = new AbortController();
  let covered: ClientRequest | undefined;
  const end = (): void => {
    own.abort();
    covered?.destroy(new Error('given up'));
  };
  const over = new Promise<never>((_resolve, reject) => own.signal.addEventListener('abort', () => reject(new Error('given up'))));
  over.catch(() => undefined);
  const timer = setTimeout(end, timeoutMs);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  return {
    over,
    covers(request) {
      covered = request;
      if (own.signal.aborted) end();
    },
    isOver: () => own.signal.aborted,
    reused: () => covered?.reusedSocket === true,
    release() {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    },
  };
}

/** Ends when the signal aborts, also while nobody reads. */
function streamOf({ request, response }: Sent, signal: AbortSignal): AsyncIterable<Uint8Array> {
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

async function readAnswer(response: IncomingMessage): Promise<HttpAnswer> {
  return {
    status: response.statusCode ?? 500,
    retryAfter: response.headers['retry-after'],
    text: await readBody(response, ANSWER_LIMIT_BYTES),
  };
}

const SILENT = 'SILENT';
const silence = (): Error => Object.assign(new Error('Nothing came on a kept connection'), { code: SILENT });

/** What was kept beside a connection that failed is as old: it would fail the next requests one by one. */
function forgetKept({ freeSockets }: HttpAgent): void {
  for (const sockets of Object.values(freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', SILENT]);
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|ERR_TLS|ERR_SSL|EPROTO/;

/** What a credential plugin printed may hold secrets, so it is not repeated. */
function unusable(): never {
  throw new Error(NO_CREDENTIALS);
}

const NO_CREDENTIALS = 'no credentials';

function noAnswer(server: string, error: unknown, signal: AbortSignal, timedOutMs: number | undefined): Result<never> {
  if (signal.aborted) return fail('retry', 'Aborted', 'The request was given up');
  if (timedOutMs !== undefined)
    return fail('retry', 'ApiUnreachable', `The API server at "${server}" did not answer within ${timedOutMs / 1000} s`);
  const message = messageOf(error);
  if (message === NO_CREDENTIALS) {
    return fail(
      'retry',
      'Unauthorized',
      `Check the credentials for "${server}": they cannot be had; "kubectl get --raw /readyz" shows why`,
    );
  }
  const code = codeOf(error);
  if (UNTRUSTED.test(code)) {
    return fail('retry', 'ApiUnreachable', `Check the certificates for "${server}": no trusted connection can be made (${code})`);
  }
  if (code === '') return fail('retry', 'ApiUnreachable', `The connection to the API server at "${server}" failed: ${message}`);
  return fail('retry', 'ApiUnreachable', `Check that the API server at "${server}" runs and can be reached: ${code}`);
}
