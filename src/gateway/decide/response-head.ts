/** The head of an upstream's HTTP/1 response, read strictly: what is ambiguous about where a message ends is refused, never guessed. */

export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** Until the connection ends. */
  | { readonly kind: 'close' };

export interface ResponseHead {
  readonly status: number;
  /** End-to-end headers: name, value, name, value, as the upstream wrote them. */
  readonly headers: string[];
  readonly contentType: string | undefined;
  readonly framing: BodyFraming;
  readonly keepAlive: boolean;
  /** Seconds from `Keep-Alive: timeout=`. */
  readonly keepAliveSeconds: number | undefined;
}

/** The whole head at once, because one pass costs less than one a line: no folded lines, no bare line ends, no control characters. */
const HEAD = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*$/;
const LENGTH = /^\d{1,15}$/;
const NO_BODY: BodyFraming = { kind: 'none' };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const UNTIL_CLOSE: BodyFraming = { kind: 'close' };

/**
 * `text` is the head up to, and without, the empty line, one character a byte. Answers what is wrong as a string.
 * Hop-by-hop headers are left out; so is what an upstream may not decide for us: who may read us from a web page (CORS), and our request id.
 */
export function parseResponseHead(text: string): ResponseHead | string {
  if (!HEAD.test(text)) return 'its head is malformed';
  const lines = text.split('\r\n');
  const status = Number(text.slice(9, 12));
  const headers: string[] = [];
  let contentType: string | undefined;
  let length: string | undefined;
  let encoding: string | undefined;
  let keepAlive = text.charAt(7) === '1';
  let keepAliveSeconds: number | undefined;
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const colon = line.indexOf(':');
    const name = line.slice(0, colon);
    const value = trimBlank(line, colon + 1);
    const lower = name.toLowerCase();
    switch (lower) {
      case 'content-length':
        if (!LENGTH.test(value)) return 'its content-length is no number';
        if (length !== undefined) {
          if (length !== value) return 'it has two different lengths';
          continue;
        }
        length = value;
        break;
      case 'transfer-encoding':
        encoding = encoding === undefined ? value.toLowerCase() : `${encoding}, ${value.toLowerCase()}`;
        continue;
      case 'connection':
        if (/(?:^|,)\s*close\s*(?:,|$)/i.test(value)) keepAlive = false;
        else if (/(?:^|,)\s*keep-alive\s*(?:,|$)/i.test(value)) keepAlive = true;
        continue;
      case 'keep-alive':
        keepAliveSeconds = secondsOf(value);
        continue;
      case 'content-type':
        contentType = value;
        break;
      default:
        if (KEPT_BACK.has(lower) || lower.startsWith('access-control-')) continue;
    }
    headers.push(name, value);
  }
  const framing = framingOf(status, length, encoding);
  if (typeof framing === 'string') return framing;
  return { status, headers, contentType, framing, keepAlive: keepAlive && framing.kind !== 'close', keepAliveSeconds };
}

const KEPT_BACK: ReadonlySet<string> = new Set([
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'x-request-id',
  'set-cookie',
]);

function framingOf(status: number, length: string | undefined, encoding: string | undefined): BodyFraming | string {
  if (encoding !== undefined && length !== undefined) return 'it has both a length and a transfer encoding';
  if (status < 200 || status === 204 || status === 304) return NO_BODY;
  if (encoding !== undefined) return encoding === 'chunked' ? CHUNKED : `transfer encoding "${encoding}" is not supported`;
  if (length === undefined) return UNTIL_CLOSE;
  return { kind: 'length', bytes: Number(length) };
}

function secondsOf(value: string): number | undefined {
  const found = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(value);
  return found === null ? undefined : Number(found[1]);
}

function trimBlank(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && (line.charCodeAt(start) === 0x20 || line.charCodeAt(start) === 0x09)) start += 1;
  while (end > start && (line.charCodeAt(end - 1) === 0x20 || line.charCodeAt(end - 1) === 0x09)) end -= 1;
  return line.slice(start, end);
}
