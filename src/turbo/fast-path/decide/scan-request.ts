/** Parses the head of an ordinary request. What it reads must mean the same to Node; it may refuse too much. Pure. */
import { keepHead, matchHead, withLength, type KnownHead } from '../../../gateway/upstream/decide/request-head.ts';

export interface ScannedRequest {
  readonly kind: 'request';
  readonly url: string;
  /** Names and values in turn, as Node gives them. */
  readonly rawHeaders: readonly string[];
  readonly headBytes: number;
  /** Undefined without the header; then there is no body. */
  readonly contentLength: string | undefined;
  readonly keepAlive: boolean;
  /** Set by `keepRequest`: the same object for each head that repeats this one. */
  readonly known?: KnownHead | undefined;
}

export type HandOverReason =
  /** Another method than POST, another path than an inference path, or a target with unusual characters. */
  | 'target'
  /** The head, or more of it than `MOST_HEAD_BYTES`; or the body. */
  | 'large'
  /** The head has a form that clients do not send. */
  | 'grammar'
  /** A header that changes how the connection or the body is read. */
  | 'header'
  /** The same header twice, or no `Host`. */
  | 'repeated'
  | 'host'
  /** `Content-Length` is not a plain number. */
  | 'length';

export type ScanResult = ScannedRequest | { readonly kind: 'handOver'; readonly reason: HandOverReason } | { readonly kind: 'more' };

/** Ordinary heads have some hundred bytes. Node applies its own limit (`SVC_HEADER_LIMIT`) and counts fewer bytes. */
const MOST_HEAD_BYTES = 8 * 1024;
const MOST_HEADERS = 64;
const START = Buffer.from('POST /');
const END = Buffer.from('\r\n\r\n');
/** Matches the whole head without its final empty line, which costs less than matching each line. */
const HEAD = /^POST \/[\w./-]*(?:\?[\w.~%&=+,:@-]*)? HTTP\/1\.1(?:\r\n[\w-]+: ?[!-~](?:[ -~]*[!-~])?)+$/;
/** Further digits would exceed every limit. */
const LENGTH = /^(?:0|[1-9][0-9]{0,11})$/;
const VERSION_LENGTH = ' HTTP/1.1'.length;
const LINE_END = '\r\n'.length;

/** Lower case. All but the first three change how the connection or the body is read. */
const HEADERS = [
  'host',
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  // Node's parser treats it like `Connection`.
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Most headers have another length, and cost next to nothing. */
const BY_LENGTH: readonly (readonly string[] | undefined)[] = Array.from({ length: 20 }, (_, length) => {
  const found = HEADERS.filter((name) => name.length === length);
  return found.length === 0 ? undefined : found;
});

const MORE = { kind: 'more' } as const;

export interface ScanRules {
  readonly headerLimit: number;
  readonly serves: (path: string) => boolean;
  /** A request with a larger body is handed over. Default: none is. */
  readonly mostBodyBytes?: number;
}

/** Bytes after the body belong to the next request. */
export function scanRequest(bytes: Buffer, { headerLimit, serves, mostBodyBytes = Number.POSITIVE_INFINITY }: ScanRules): ScanResult {
  if (!startsRight(bytes)) return handOver('target');
  const end = bytes.indexOf(END);
  const headBytes = end === -1 ? bytes.length : end + END.length;
  if (headBytes > Math.min(headerLimit, MOST_HEAD_BYTES)) return handOver('large');
  if (end === -1) return MORE;
  const head = bytes.toString('latin1', 0, end);
  if (!HEAD.test(head)) return handOver('grammar');
  const firstLine = head.indexOf('\r');
  const url = head.slice(START.length - 1, firstLine - VERSION_LENGTH);
  const query = url.indexOf('?');
  if (!serves(query === -1 ? url : url.slice(0, query))) return handOver('target');
  const headers = readHeaders(head, firstLine + LINE_END);
  if (typeof headers === 'string') return handOver(headers);
  if (Number(headers.contentLength ?? 0) > mostBodyBytes) return handOver('large');
  const { rawHeaders, contentLength, keepAlive } = headers;
  return { kind: 'request', url, rawHeaders, headBytes, contentLength, keepAlive };
}

/** Prepares for requests with the same head. `bytes`: those of `scanned`. */
export const keepRequest = (bytes: Buffer, scanned: ScannedRequest): ScannedRequest => ({
  ...scanned,
  known: keepHead(bytes.subarray(0, scanned.headBytes)),
});

/** What `scanRequest` returns for a head that repeats the kept one, at less cost. Undefined: it must be scanned. */
export function rescanRequest(
  bytes: Buffer,
  kept: ScannedRequest,
  { headerLimit, mostBodyBytes = Number.POSITIVE_INFINITY }: ScanRules,
): ScannedRequest | undefined {
  const matched = kept.known && matchHead(kept.known, bytes);
  if (matched === undefined) return undefined;
  const { length, headBytes } = matched;
  if (length === Number(kept.contentLength)) return kept;
  if (length > mostBodyBytes || headBytes > Math.min(headerLimit, MOST_HEAD_BYTES)) return undefined;
  const contentLength = String(length);
  return { ...kept, contentLength, headBytes, rawHeaders: withLength(kept.rawHeaders, contentLength) };
}

function startsRight(bytes: Buffer): boolean {
  const compared = Math.min(bytes.length, START.length);
  for (let index = 0; index < compared; index += 1) if (bytes[index] !== START[index]) return false;
  return true;
}

type Headers = Pick<ScannedRequest, 'rawHeaders' | 'contentLength' | 'keepAlive'>;

function readHeaders(head: string, from: number): Headers | HandOverReason {
  const rawHeaders: string[] = [];
  let host: string | undefined;
  let connection: string | undefined;
  let contentLength: string | undefined;
  for (let at = from; at < head.length;) {
    const colon = head.indexOf(':', at);
    const lineEnd = head.indexOf('\r', colon);
    const end = lineEnd === -1 ? head.length : lineEnd;
    const name = head.slice(at, colon);
    const value = head.slice(head.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1, end);
    rawHeaders.push(name, value);
    at = end + LINE_END;
    switch (roleOf(name)) {
      case undefined:
        break;
      case 'host':
        if (host !== undefined) return 'repeated';
        host = value;
        break;
      case 'connection':
        if (connection !== undefined) return 'repeated';
        connection = value.toLowerCase();
        if (connection !== 'keep-alive' && connection !== 'close') return 'header';
        break;
      case 'content-length':
        if (contentLength !== undefined) return 'repeated';
        if (!LENGTH.test(value)) return 'length';
        contentLength = value;
        break;
      default:
        return 'header';
    }
  }
  if (rawHeaders.length > 2 * MOST_HEADERS) return 'large';
  return host === undefined ? 'host' : { rawHeaders, contentLength, keepAlive: connection !== 'close' };
}

function roleOf(name: string): string | undefined {
  const candidates = BY_LENGTH[name.length];
  if (candidates === undefined) return undefined;
  const lower = name.toLowerCase();
  return candidates.includes(lower) ? lower : undefined;
}

const handOver = (reason: HandOverReason): ScanResult => ({ kind: 'handOver', reason });
