/**
 * Reads the head of a request of the form that nearly all clients send, from the bytes that have arrived. Whatever else they are is not decided here: then they are handed over to
 * Node's parser. So this file may refuse too much and never too little: a request that it reads must mean the same to Node. Pure.
 */

export interface ScannedRequest {
  readonly kind: 'request';
  /** The target as sent: a known path, perhaps with a query. */
  readonly url: string;
  /** Names and values in turn, as Node gives them. */
  readonly rawHeaders: readonly string[];
  /** Offset of the body. */
  readonly headBytes: number;
  /** Undefined without the header; then there is no body. */
  readonly contentLength: string | undefined;
  /** False: the client wants the connection to be closed after the answer. */
  readonly keepAlive: boolean;
}

/** Why a request goes to Node's parser. */
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

/** Ordinary heads have some hundred bytes. Node has its own limit (`SVC_HEADER_LIMIT`), and counts fewer bytes than the head has. */
const MOST_HEAD_BYTES = 8 * 1024;
const MOST_HEADERS = 64;
const START = Buffer.from('POST /');
const END = '\r\n\r\n';
/** Matches the whole head without the empty line at its end, because that costs less than a match per line. Values begin and end with visible characters. */
const HEAD = /^POST \/[\w./-]*(?:\?[\w.~%&=+,:@-]*)? HTTP\/1\.1(?:\r\n[\w-]+: ?[!-~](?:[ -~]*[!-~])?)+$/;
/** Further digits would exceed every limit. */
const LENGTH = /^(?:0|[1-9][0-9]{0,11})$/;
const VERSION_LENGTH = ' HTTP/1.1'.length;

const HANDED_OVER: ReadonlySet<string> = new Set([
  'expect',
  'http2-settings',
  // Node's parser treats it like `Connection`.
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const MORE = { kind: 'more' } as const;

export interface ScanRules {
  /** `SVC_HEADER_LIMIT`. */
  readonly headerLimit: number;
  /** Whether a POST to this path, without its query, is an inference request. */
  readonly serves: (path: string) => boolean;
  /** A request with a larger body is handed over. Default: none is. */
  readonly mostBodyBytes?: number;
}

/** `bytes`: all that has arrived since the last request. What follows the body is the next request, and is not looked at. */
export function scanRequest(bytes: Buffer, { headerLimit, serves, mostBodyBytes = Number.POSITIVE_INFINITY }: ScanRules): ScanResult {
  const compared = Math.min(bytes.length, START.length);
  if (bytes.compare(START, 0, compared, 0, compared) !== 0) return handOver('target');
  const end = bytes.indexOf(END, 0, 'latin1');
  const headBytes = end === -1 ? bytes.length : end + END.length;
  if (headBytes > Math.min(headerLimit, MOST_HEAD_BYTES)) return handOver('large');
  if (end === -1) return MORE;
  const head = bytes.toString('latin1', 0, end);
  if (!HEAD.test(head)) return handOver('grammar');
  const lines = head.split('\r\n');
  const url = (lines[0] ?? '').slice(START.length - 1, -VERSION_LENGTH);
  const query = url.indexOf('?');
  if (!serves(query === -1 ? url : url.slice(0, query))) return handOver('target');
  if (lines.length - 1 > MOST_HEADERS) return handOver('large');
  const headers = readHeaders(lines);
  if (typeof headers === 'string') return handOver(headers);
  if (Number(headers.contentLength ?? 0) > mostBodyBytes) return handOver('large');
  return { kind: 'request', url, headBytes, ...headers };
}

type Headers = Pick<ScannedRequest, 'rawHeaders' | 'contentLength' | 'keepAlive'>;

/** The first line is not a header. */
function readHeaders(lines: readonly string[]): Headers | HandOverReason {
  const rawHeaders: string[] = [];
  const names = new Set<string>();
  let contentLength: string | undefined;
  let keepAlive = true;
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const colon = line.indexOf(':');
    const name = line.slice(0, colon);
    const value = line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);
    const lower = name.toLowerCase();
    if (HANDED_OVER.has(lower)) return 'header';
    if (lower === 'connection') {
      keepAlive = value.toLowerCase() !== 'close';
      if (keepAlive && value.toLowerCase() !== 'keep-alive') return 'header';
    } else if (lower === 'content-length') {
      if (!LENGTH.test(value)) return 'length';
      contentLength = value;
    }
    names.add(lower);
    rawHeaders.push(name, value);
  }
  if (names.size !== lines.length - 1) return 'repeated';
  return names.has('host') ? { rawHeaders, contentLength, keepAlive } : 'host';
}

function handOver(reason: HandOverReason): ScanResult {
  return { kind: 'handOver', reason };
}
