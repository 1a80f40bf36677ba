/**
 * Sends one GET request and follows redirects itself: a token must only reach its own server, and the Hub states the
 * checksum of a file in the headers of the redirect.
 */
import type { Readable } from 'node:stream';
import { request, Agent, EnvHttpProxyAgent, type Dispatcher, type buildConnector } from 'undici';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { FileVersion } from '../catalogue/catalogue.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { hubHash } from './decide/judge-response.ts';

export interface Bearer {
  /** Scheme, host and port that may see the token. */
  readonly origin: string;
  readonly token: string;
}

interface OpenUrl {
  readonly url: string;
  readonly dispatcher: Dispatcher;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bearer?: Bearer | undefined;
  /** Refuses redirects to another scheme, host or port. */
  readonly stays?: boolean | undefined;
}

type ResponseHeaders = Dispatcher.ResponseData['headers'];

export interface OpenedUrl {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** Headers of the first response, which may be a redirect of the Hub. */
  readonly firstHeaders: ResponseHeaders;
  /** The last address, without its query string, which may contain a signature. */
  readonly url: string;
  readonly sentToken: boolean;
  readonly body: Readable;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5;

export async function openUrl(asked: OpenUrl, signal: AbortSignal): Promise<Result<OpenedUrl>> {
  const { url: from, dispatcher, headers = {}, bearer, stays = false } = asked;
  let url = new URL(from);
  let firstHeaders: ResponseHeaders | undefined;
  for (let redirects = 0; ; redirects += 1) {
    const sentToken = bearer !== undefined && url.origin === bearer.origin;
    const authorization = sentToken ? { authorization: `Bearer ${bearer.token}` } : {};
    const own = { 'accept-encoding': 'identity', 'user-agent': 'svc', ...headers, ...authorization };
    const response = await request(url, { dispatcher, signal, headers: own });
    firstHeaders ??= response.headers;
    const { location } = response.headers;
    const status = response.statusCode;
    if (!REDIRECTS.has(status) || typeof location !== 'string')
      return ok({ status, headers: response.headers, firstHeaders, url: withoutQuery(url), sentToken, body: response.body });
    void response.body.dump({ limit: 65_536 }).catch(() => undefined);
    const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    const problem = redirects === MAX_REDIRECTS ? 'is redirected too often' : redirectProblem(url, next, stays);
    if (problem !== undefined || next === undefined)
      return fail('stalled', 'ModelSourceRefused', `The address "${withoutQuery(new URL(from))}" ${problem ?? ''}; check it`);
    url = next;
  }
}

export function discard(body: Readable): void {
  body.on('error', () => undefined).destroy();
}

function redirectProblem(from: URL, to: URL | undefined, stays: boolean): string | undefined {
  if (to === undefined) return 'redirects to an invalid address';
  if (stays && to.origin !== from.origin) return `redirects to "${to.origin}"`;
  if (to.protocol !== 'https:' && to.protocol !== 'http:') return `redirects to "${to.protocol}"`;
  return from.protocol === 'https:' && to.protocol === 'http:' ? 'redirects from "https:" to "http:"' : undefined;
}

const withoutQuery = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

/** Uses HTTP_PROXY, HTTPS_PROXY and NO_PROXY, except for loopback addresses. The caller disposes of the dispatcher. */
export function connectTo(url: string, silenceMs: number, connect?: buildConnector.connector): Dispatcher & AsyncDisposable {
  const options = { headersTimeout: silenceMs, bodyTimeout: silenceMs, ...(connect === undefined ? {} : { connect }) };
  const isLocal = /^(localhost|127\.[0-9.]+|\[::1\])$/.test(new URL(url).hostname);
  const dispatcher = isLocal ? new Agent(options) : new EnvHttpProxyAgent(options);
  return Object.assign(dispatcher, { [Symbol.asyncDispose]: async () => await dispatcher.destroy().catch(() => undefined) });
}

const SILENCE_MS = 30_000;

/** Asks about a file without downloading it. `sha256` is empty if the server does not state it: only the Hub does. */
export async function askSource(url: string, bearer: Bearer | undefined, signal: AbortSignal): Promise<Result<FileVersion>> {
  await using dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, bearer, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return opened;
    const { status, headers, firstHeaders, body } = opened.value;
    discard(body);
    if (status !== 200 && status !== 206) return { ok: false, failure: explainRefusal(opened.value).failure };
    const range = /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const sizeBytes = Number(status === 206 ? range : headers['content-length']);
    if (Number.isSafeInteger(sizeBytes) && sizeBytes > 0) return ok({ sizeBytes, sha256: hubHash(firstHeaders) ?? '' });
    return fail('stalled', 'ModelSourceRefused', `The server of "${url}" does not state the size of the file; use another address`);
  } catch (error) {
    if (signal.aborted) throw error;
    return fail('retry', 'ModelPullFailed', `The address "${url}" cannot be read: ${messageOf(error) || codeOf(error)}; check it`);
  }
}
