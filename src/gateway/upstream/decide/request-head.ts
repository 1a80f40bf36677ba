/** Parses a client's raw headers in one pass: the values the gateway needs, and the header lines for the upstream. */

export interface RequestHead {
  /** `name: value\r\n` for each header to be forwarded. Node's parser has refused control characters in values. */
  readonly forwarded: string;
  readonly contentType: string | undefined;
  /** Lower case. */
  readonly contentEncoding: string | undefined;
  /** Bytes. Undefined if the body is chunked or missing. */
  readonly contentLength: number | undefined;
  readonly chunked: boolean;
  readonly expectsContinue: boolean;
  /** The client's own request id, if it is well-formed. */
  readonly requestId: string | undefined;
  /** `X-Session-Id`: the conversation, by the client's own name. */
  readonly sessionId: string | undefined;
  /** Forwarded as well. Repeated headers are joined and then malformed. */
  readonly traceparent: string | undefined;
  readonly host: string | undefined;
  readonly hosts: number;
  /** `Origin`, `Sec-Fetch-Site`, `-Mode` and `-Dest`. Repeated headers are joined and then match nothing. */
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  readonly fetchMode: string | undefined;
  readonly fetchDest: string | undefined;
  readonly isProgram: boolean;
}

/** Marks requests of `svcctl`. Scripts cannot set it: https://fetch.spec.whatwg.org/#forbidden-request-header. */
export const PROGRAM_HEADER = 'sec-svc-client';

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}$/;

/** Hop-by-hop (RFC 9110, 7.6.1), about the page, and `accept-encoding`: errors of the upstream must be readable. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...'connection keep-alive proxy-authenticate proxy-connection te trailer transfer-encoding upgrade'.split(' '),
  ...'host content-length expect accept-encoding x-request-id x-client-request-id'.split(' '),
  ...'origin referer sec-fetch-site sec-fetch-mode sec-fetch-dest sec-fetch-user'.split(' '),
  PROGRAM_HEADER,
]);

/** Credentials and identity, which are for the gateway alone: of SDKs, and added by proxies. */
const CREDENTIALS =
  /^(?:(?:proxy-)?authorization|cookie2?|(?:x-)?api-?key|x-goog-api-key|ocp-apim-subscription-key|x-functions-key|x-(?:auth|access|id|csrf|xsrf|vault|gitlab|amz-security)-token|(?:x-)?remote-(?:user|groups?|name|email)|x-(?:svc-)?proxy-secret|(?:x-)?(?:forwarded-|ssl-)?client-cert(?:-chain)?|x-forwarded-tls-client-cert.*|x-(?:serverless|original|forwarded)-authorization|x-forwarded-(?:user|email|groups|preferred-username|access-token|id-token)|(?:x-auth-request|x-authentik|x-amzn-oidc|x-goog-authenticated-user|x-goog-iap|x-goog-iam|x-ms-client-principal|x-ms-token|x-pomerium|x-vouch|x-webauth|x-openwebui-user|cf-access|tailscale-user)-.*|x-ms-client-principal)$/;

const PAGE_HEADERS: ReadonlyMap<string, 'origin' | 'fetchSite' | 'fetchMode' | 'fetchDest'> = new Map([
  ['origin', 'origin'],
  ['sec-fetch-site', 'fetchSite'],
  ['sec-fetch-mode', 'fetchMode'],
  ['sec-fetch-dest', 'fetchDest'],
]);

/** Words of `Connection` that are no hop-by-hop headers; without the last two, a message would mean something else. */
const KEPT: ReadonlySet<string> = new Set(['keep-alive', 'close', 'content-type', 'content-length']);

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** `name` in lower case. Pure. */
export const isCredential = (name: string): boolean => CREDENTIALS.test(name);

export function parseRequestHead(raw: readonly string[]): RequestHead {
  let forwarded = '';
  let dropped: readonly string[] | undefined;
  const head: Mutable<RequestHead> = {
    forwarded,
    contentType: undefined,
    contentEncoding: undefined,
    contentLength: undefined,
    chunked: false,
    expectsContinue: false,
    requestId: undefined,
    sessionId: undefined,
    traceparent: undefined,
    host: undefined,
    hosts: 0,
    origin: undefined,
    fetchSite: undefined,
    fetchMode: undefined,
    fetchDest: undefined,
    isProgram: false,
  };
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (NOT_FORWARDED.has(lower)) {
      if (lower === 'connection') dropped = joinNames(dropped, namesInConnection(value));
      else readHeader(head, lower, value);
    } else if (!CREDENTIALS.test(lower)) {
      if (lower === 'content-type') head.contentType = value;
      else if (lower === 'content-encoding') head.contentEncoding = value.toLowerCase();
      else if (lower === 'x-session-id') head.sessionId = value;
      else if (lower === 'traceparent') head.traceparent = head.traceparent === undefined ? value : `${head.traceparent}, ${value}`;
      forwarded += `${name}: ${value}\r\n`;
    }
  }
  head.forwarded = dropped === undefined ? forwarded : withoutHeaders(forwarded, dropped);
  return head;
}

function readHeader(head: Mutable<RequestHead>, lower: string, value: string): void {
  switch (lower) {
    case 'content-length':
      head.contentLength = Number(value);
      break;
    case 'host':
      head.host = value;
      head.hosts += 1;
      break;
    case 'transfer-encoding':
      head.chunked = true;
      break;
    case 'expect':
      head.expectsContinue = value.toLowerCase() === '100-continue';
      break;
    case PROGRAM_HEADER:
      head.isProgram = true;
      break;
    case 'x-client-request-id':
      if (REQUEST_ID.test(value)) head.requestId = value;
      break;
    case 'x-request-id':
      if (head.requestId === undefined && REQUEST_ID.test(value)) head.requestId = value;
      break;
    default: {
      const field = PAGE_HEADERS.get(lower);
      if (field !== undefined) head[field] = head[field] === undefined ? value : `${head[field]}, ${value}`;
    }
  }
}

function joinNames(present: readonly string[] | undefined, names: readonly string[] | undefined): readonly string[] | undefined {
  return present === undefined || names === undefined ? (names ?? present) : [...present, ...names];
}

export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true;
  return /^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** Lower-case names of hop-by-hop headers in `Connection`. Undefined if there are none. Pure. */
export function namesInConnection(value: string): readonly string[] | undefined {
  if (value === 'keep-alive' || value === 'close' || value === 'Keep-Alive') return undefined;
  const parts = value.toLowerCase().split(',');
  const names = parts.map((part) => part.trim()).filter((part) => part !== '' && !KEPT.has(part));
  return names.length === 0 ? undefined : names;
}

/** `names` in lower case. Pure. */
export function withoutHeaders(lines: string, names: readonly string[]): string {
  return lines
    .split('\r\n')
    .filter((line) => line !== '' && !names.includes(line.slice(0, line.indexOf(':')).toLowerCase()))
    .map((line) => `${line}\r\n`)
    .join('');
}

const AUTHORITY = /^[\w.:[\]-]{1,260}$/;

/** Where the client reaches this service, by what it says itself. Empty: it does not say. */
export function originOf({ host, forwarded }: Pick<RequestHead, 'host' | 'forwarded'>): string {
  if (host === undefined || !AUTHORITY.test(host)) return '';
  return `${/^x-forwarded-proto: *https *$/im.test(forwarded) ? 'https' : 'http'}://${host}`;
}

/** A head whose repetition need not be parsed again. */
export interface KnownHead {
  readonly bytes: Buffer;
  /** Offsets of the value of its only `Content-Length`. */
  readonly lengthAt: number;
  readonly lengthEnd: number;
}

/** Ordinary heads have some hundred bytes. A connection holds what is kept for as long as it is open. */
const MOST_KEPT_BYTES = 2048;

/** `bytes`: a parsed head with its empty line. Undefined if it is long, or has not one `Content-Length`. Pure. */
export function keepHead(bytes: Buffer): KnownHead | undefined {
  if (bytes.length > MOST_KEPT_BYTES) return undefined;
  const [found, ...more] = bytes.toString('latin1').matchAll(/\r\ncontent-length:[ \t]*(\d+)(?=\r)/gi);
  const [line = '', value = ''] = found ?? [];
  const lengthEnd = (found?.index ?? 0) + line.length;
  // A copy: the memory of requests is freed.
  return found === undefined || more.length > 0 ? undefined : { bytes: Buffer.from(bytes), lengthAt: lengthEnd - value.length, lengthEnd };
}

/** Whether the nth head of a connection that was parsed is kept: the second one, and then ever fewer. Pure. */
export const isKept = (parsed: number): boolean => parsed > 1 && Number.isInteger(Math.log2(parsed));

/** What `matchHead` has found: the number of `Content-Length`, and the bytes of the head. */
export interface MatchedHead {
  readonly length: number;
  readonly headBytes: number;
}

/** Undefined unless `bytes` begin with the same head but for the number of `Content-Length`, a plain one. Pure. */
export function matchHead({ bytes: known, lengthAt, lengthEnd }: KnownHead, bytes: Buffer): MatchedHead | undefined {
  if (bytes.length < lengthAt || known.compare(bytes, 0, lengthAt, 0, lengthAt) !== 0) return undefined;
  let end = lengthAt;
  let length = 0;
  for (let byte = bytes[end] ?? 0; byte >= ZERO && byte <= ZERO + 9; byte = bytes[end] ?? 0) {
    length = length * 10 + byte - ZERO;
    end += 1;
  }
  const digits = end - lengthAt;
  if (digits === 0 || digits > MOST_DIGITS || (digits > 1 && bytes[lengthAt] === ZERO)) return undefined;
  return isSame(known, lengthEnd, bytes, end) ? { length, headBytes: end + known.length - lengthEnd } : undefined;
}

const ZERO = 0x30;
/** Further digits would exceed every limit. */
const MOST_DIGITS = 12;
/** Comparing fewer bytes costs less than a call of `Buffer.compare`. */
const FEW_BYTES = 64;

/** Whether the rest of `known` is at an offset of `bytes`. */
function isSame(known: Buffer, from: number, bytes: Buffer, at: number): boolean {
  const length = known.length - from;
  if (bytes.length < at + length) return false;
  if (length > FEW_BYTES) return known.compare(bytes, at, at + length, from) === 0;
  for (let index = 0; index < length; index += 1) if (known[from + index] !== bytes[at + index]) return false;
  return true;
}

/** A copy of names and values in turn, with another `Content-Length`. Pure. */
export function withLength(headers: readonly string[], value: string): string[] {
  const copy = [...headers];
  const name = copy.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === 'content-length');
  copy[name + 1] = value;
  return copy;
}
