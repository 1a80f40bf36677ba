/**
 * Sends one GET request and follows its redirects by hand, for two reasons: a token must never reach another server than its own, and the Hub says what a
 * file is in the headers of the redirect, which a client that follows it alone would hide.
 */
import type { Readable } from 'node:stream';
import { request, Agent, EnvHttpProxyAgent, type Dispatcher, type buildConnector } from 'undici';
import { fail, ok, type Result } from '../../schema/words/failure.ts';

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
}

type ResponseHeaders = Dispatcher.ResponseData['headers'];

export interface OpenedUrl {
  readonly status: number;
  /** Those of the last response. */
  readonly headers: ResponseHeaders;
  /** Those of the first one, which is a redirect where the Hub sends a file from elsewhere. */
  readonly firstHeaders: ResponseHeaders;
  /** The last address, without its query, which may contain a signature. */
  readonly url: string;
  readonly sentToken: boolean;
  readonly body: Readable;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5;

/** Throws if there is no answer. */
export async function openUrl({ url: from, dispatcher, headers = {}, bearer }: OpenUrl, signal: AbortSignal): Promise<Result<OpenedUrl>> {
  let url = new URL(from);
  let firstHeaders: ResponseHeaders | undefined;
  for (let redirects = 0; ; redirects += 1) {
    const sentToken = bearer !== undefined && url.origin === bearer.origin;
    const authorization = sentToken ? { authorization: `Bearer ${bearer.token}` } : {};
    // The hash is of the bytes as they are stored.
    const own = { 'accept-encoding': 'identity', 'user-agent': 'svc', ...headers, ...authorization };
    const response = await request(url, { dispatcher, signal, headers: own });
    firstHeaders ??= response.headers;
    const { location } = response.headers;
    const status = response.statusCode;
    if (!REDIRECTS.has(status) || typeof location !== 'string') {
      return ok({ status, headers: response.headers, firstHeaders, url: withoutQuery(url), sentToken, body: response.body });
    }
    void response.body.dump({ limit: 65_536 }).catch(() => undefined);
    const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    const refused = redirects === MAX_REDIRECTS ? 'it is redirected too often' : redirectProblem(url, next);
    if (refused !== undefined || next === undefined)
      return fail(
        'stalled',
        'ModelSourceRefused',
        `Check the address "${withoutQuery(new URL(from))}": ${refused ?? 'its redirect is not valid'}`,
      );
    url = next;
  }
}

/** Ends a response whose body nobody reads. */
export function discard(body: Readable): void {
  body.on('error', () => undefined).destroy();
}

function redirectProblem(from: URL, to: URL | undefined): string | undefined {
  if (to === undefined) return 'its redirect is not a valid address';
  if (to.protocol !== 'https:' && to.protocol !== 'http:') return `it is redirected to "${to.protocol}"`;
  return from.protocol === 'https:' && to.protocol === 'http:' ? 'it is redirected from "https:" to "http:"' : undefined;
}

function withoutQuery({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** Connections for downloads. */

/**
 * Through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, if there are any. No proxy can reach the loopback address of this machine. A connection fails if nothing
 * is received for `silenceMs`. The caller destroys the dispatcher. `connect` opens the connections that need no proxy.
 */
export function connectTo(url: string, silenceMs: number, connect?: buildConnector.connector): Dispatcher {
  const options = { headersTimeout: silenceMs, bodyTimeout: silenceMs, ...(connect === undefined ? {} : { connect }) };
  const isLocal = /^(localhost|127\.[0-9.]+|\[::1\])$/.test(new URL(url).hostname);
  return isLocal ? new Agent(options) : new EnvHttpProxyAgent(options);
}
