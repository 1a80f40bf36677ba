/** The headers with which the files of the dashboard are sent. Pure. */

/**
 * What the page may load and reach: the service itself, and nothing else. Scripts and styles come from files alone, and nothing turns text into markup or code, so that what a model or a log says stays text.
 * `data:` and `blob:` are pictures that a user chose or a model drew. https://www.w3.org/TR/CSP3/
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const SECURITY_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** A year, for files whose name changes with their content. The page itself is asked for again each time, which costs an answer without a body. */
const FOREVER = 'public, max-age=31536000, immutable';
const ASK_AGAIN = 'no-cache';

export function cacheHeader(path: string): string {
  return path.startsWith('/assets/') ? FOREVER : ASK_AGAIN;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Undefined for files that are not served. */
export function mediaTypeOf(path: string): string | undefined {
  return TYPES[path.slice(path.lastIndexOf('.') + 1)];
}

export type Encoding = 'br' | 'gzip' | 'identity';

/** The best encoding that the client accepts, by `Accept-Encoding` (RFC 9110, section 12.5.3). A quality of 0 refuses one. */
export function chooseEncoding(accepted: string | undefined): Encoding {
  const refused = /^(?:0(?:\.0{1,3})?)$/;
  const names = new Set(
    (accepted ?? '').split(',').flatMap((part) => {
      const [name = '', ...rest] = part.split(';').map((text) => text.trim().toLowerCase());
      return rest.some((text) => text.startsWith('q=') && refused.test(text.slice(2))) ? [] : [name];
    }),
  );
  if (names.has('br')) return 'br';
  return names.has('gzip') ? 'gzip' : 'identity';
}

/** Whether `If-None-Match` names the tag, compared weakly, as RFC 9110 asks for (section 13.1.2). */
export function hasVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  const tags = (ifNoneMatch ?? '').split(',').map(bare);
  return tags.includes('*') || tags.includes(bare(etag));
}
