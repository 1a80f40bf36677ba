/** Parses a client's raw headers in one pass: the values the gateway needs, and the header lines for the upstream. */

export interface RequestHead {
  /** `name: value\r\n` for each header to be forwarded. Node's parser has refused control characters in values. */
  readonly forwarded: string;
  readonly contentType: string | undefined;
  /** In lower case. */
  readonly contentEncoding: string | undefined;
  /** In bytes. Undefined if the body is chunked or missing. */
  readonly contentLength: number | undefined;
  readonly chunked: boolean;
  readonly expectsContinue: boolean;
  /** The client's own request id, if it is well-formed. */
  readonly requestId: string | undefined;
  /** Number of `Host` headers; a valid HTTP/1.1 request has one. */
  readonly hosts: number;
}

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}$/;

/**
 * Headers that are not forwarded: hop-by-hop headers (RFC 9110, 7.6.1), the client's credentials and identity, and `accept-encoding`, because the
 * network to the upstream is local and its errors must be readable here.
 */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
  'authorization',
  'cookie',
  'x-api-key',
  'x-forwarded-email',
  'x-proxy-secret',
  'x-svc-proxy-secret',
  'accept-encoding',
  'x-request-id',
  'x-client-request-id',
  'origin',
]);

export function parseRequestHead(raw: readonly string[]): RequestHead {
  let forwarded = '';
  let contentType: string | undefined;
  let contentEncoding: string | undefined;
  let contentLength: number | undefined;
  let chunked = false;
  let expectsContinue = false;
  let requestId: string | undefined;
  let hosts = 0;
  let dropped: readonly string[] | undefined;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (!NOT_FORWARDED.has(lower)) {
      if (lower === 'content-type') contentType = value;
      else if (lower === 'content-encoding') contentEncoding = value.toLowerCase();
      forwarded += `${name}: ${value}\r\n`;
      continue;
    }
    if (lower === 'content-length') contentLength = Number(value);
    else if (lower === 'host') hosts += 1;
    else if (lower === 'transfer-encoding') chunked = true;
    else if (lower === 'expect') expectsContinue = value.toLowerCase() === '100-continue';
    else if (lower === 'connection') dropped = namedByConnection(value) ?? dropped;
    else if (lower === 'x-client-request-id' || (lower === 'x-request-id' && requestId === undefined)) {
      if (REQUEST_ID.test(value)) requestId = value;
    }
  }
  if (dropped !== undefined) forwarded = without(forwarded, dropped);
  return { forwarded, contentType, contentEncoding, contentLength, chunked, expectsContinue, requestId, hosts };
}

export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true;
  return /^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** Names of headers that the client declared hop-by-hop in `Connection`. */
function namedByConnection(value: string): readonly string[] | undefined {
  if (value === 'keep-alive' || value === 'close' || value === 'Keep-Alive') return undefined;
  const names = value
    .toLowerCase()
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && part !== 'keep-alive' && part !== 'close');
  return names.length === 0 ? undefined : names;
}

function without(lines: string, names: readonly string[]): string {
  return lines
    .split('\r\n')
    .filter((line) => line !== '' && !names.includes(line.slice(0, line.indexOf(':')).toLowerCase()))
    .map((line) => `${line}\r\n`)
    .join('');
}
