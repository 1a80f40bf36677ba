/** The headers with which a browser lets the pages of an allowed origin read answers (https://fetch.spec.whatwg.org/#http-cors-protocol). */

type Headers = Readonly<Record<string, string>>;

/** What scripts may read besides the headers that are always readable: whatever the service itself sets for clients. */
const EXPOSED = 'x-request-id, retry-after, retry-after-ms, x-should-retry, openai-processing-ms, etag';
/** Seconds for which a browser may remember the answer to a preflight. Chromium allows at most 7200. */
const MAX_AGE = '600';
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;

/** `origin` must be one that may use the route. No cookies are allowed: programs authenticate with a token. Pure. */
export function corsHeaders(origin: string): Headers {
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED, vary: 'Origin' };
}

/**
 * The answer to a preflight of an allowed origin. `requested` is `Access-Control-Request-Headers`: all of them are allowed, because SDKs send many of their own.
 * Pure.
 */
export function preflightHeaders(origin: string, methods: readonly string[], requested: string | undefined): Headers {
  const allowed = requested !== undefined && HEADER_NAMES.test(requested) ? { 'access-control-allow-headers': requested } : {};
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': methods.join(', '),
    ...allowed,
    'access-control-max-age': MAX_AGE,
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  };
}
