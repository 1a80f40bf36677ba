/** Parses the head of an upstream's HTTP/1 response. Whatever makes the end of a message ambiguous is refused. */
import { keepHead, matchHead, namesInConnection, type KnownHead } from './request-head.ts';

export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

export interface ResponseHead {
  readonly status: number;
  /** End-to-end headers as the upstream wrote them: name, value, name, value. `framing` stands for `Content-Length`. */
  readonly headers: readonly string[];
  /** The same as text, where it is known already. */
  readonly text?: HeaderText | undefined;
  readonly contentType: string | undefined;
  readonly framing: BodyFraming;
  readonly keepAlive: boolean;
  /** Seconds from `Keep-Alive: timeout=`. */
  readonly keepAliveSeconds: number | undefined;
}

export interface HeaderText {
  /** `name: value\r\n` for each header. */
  readonly lines: string;
  readonly hasDate: boolean;
}

/** A head that its connection may repeat. */
export interface KeptHead {
  readonly known: KnownHead;
  readonly head: ResponseHead;
}

/** Matching the whole head costs less than a match per line. Refuses folded lines and control characters. */
const HEAD = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*$/;
const LINE_END = '\r\n'.length;
const LENGTH = /^\d{1,15}$/;
const NO_BODY: BodyFraming = { kind: 'none' };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const UNTIL_CLOSE: BodyFraming = { kind: 'close' };

/**
 * `text`: the head without its empty line, one character per byte. Returns the problem as a string. Leaves out
 * hop-by-hop headers, CORS headers, cookies and the request id.
 */
export function parseResponseHead(text: string): ResponseHead | string {
  if (!HEAD.test(text)) return 'its head is malformed';
  const status = Number(text.slice(9, 12));
  const headers: string[] = [];
  let contentType: string | undefined;
  let length: string | undefined;
  let encoding: string | undefined;
  let keepAlive = text.charAt(7) === '1';
  let keepAliveSeconds: number | undefined;
  let dropped: string[] | undefined;
  const statusEnd = text.indexOf('\r');
  for (let at = statusEnd === -1 ? text.length : statusEnd + LINE_END; at < text.length;) {
    const colon = text.indexOf(':', at);
    const lineEnd = text.indexOf('\r', colon);
    const end = lineEnd === -1 ? text.length : lineEnd;
    const name = text.slice(at, colon);
    const value = trimBlank(text, colon + 1, end);
    at = end + LINE_END;
    const lower = name.toLowerCase();
    switch (lower) {
      case 'content-length':
        if (!LENGTH.test(value)) return 'its content-length is not a number';
        if (length !== undefined && length !== value) return 'it has two different content-lengths';
        length = value;
        continue;
      case 'transfer-encoding':
        encoding = encoding === undefined ? value.toLowerCase() : `${encoding}, ${value.toLowerCase()}`;
        continue;
      case 'connection':
        keepAlive = keepsAlive(value) ?? keepAlive;
        (dropped ??= []).push(...(namesInConnection(value) ?? []));
        continue;
      case 'keep-alive':
        keepAliveSeconds = secondsOf(value);
        continue;
      case 'content-type':
        contentType = value;
        break;
      default:
        if (NOT_FORWARDED.has(lower) || lower.startsWith('access-control-')) continue;
    }
    headers.push(name, value);
  }
  const framing = framingOf(status, length, encoding);
  if (typeof framing === 'string') return framing;
  keepAlive &&= framing.kind !== 'close';
  return { status, headers: without(headers, dropped), contentType, framing, keepAlive, keepAliveSeconds };
}

/** `headers`: names and values in turn. */
export function textOf(headers: readonly string[]): HeaderText {
  let lines = '';
  let hasDate = false;
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? '';
    lines += `${name}: ${headers[index + 1] ?? ''}\r\n`;
    hasDate ||= name.length === 4 && name.toLowerCase() === 'date';
  }
  return { lines, hasDate };
}

/** `bytes`: the head with its empty line. Undefined if its repetition could not be recognised. */
export function keepResponse(bytes: Buffer, head: ResponseHead): KeptHead | undefined {
  const known = head.framing.kind === 'length' ? keepHead(bytes) : undefined;
  return known && { known, head: { ...head, text: textOf(head.headers) } };
}

/** What would be parsed, at less cost, if `bytes` begin with the kept head but for its length. */
export function repeatResponse(
  bytes: Buffer,
  { known, head }: KeptHead,
): { readonly head: ResponseHead; readonly headBytes: number } | undefined {
  const matched = matchHead(known, bytes);
  return matched && { head: { ...head, framing: { kind: 'length', bytes: matched.length } }, headBytes: matched.headBytes };
}

function keepsAlive(value: string): boolean | undefined {
  if (value === 'keep-alive') return true;
  if (/(?:^|,)\s*close\s*(?:,|$)/i.test(value)) return false;
  return /(?:^|,)\s*keep-alive\s*(?:,|$)/i.test(value) ? true : undefined;
}

function without(headers: readonly string[], names: readonly string[] | undefined): readonly string[] {
  if (names === undefined || names.length === 0) return headers;
  return headers.filter((_text, index) => !names.includes((headers[index - (index % 2)] ?? '').toLowerCase()));
}

const NOT_FORWARDED: ReadonlySet<string> = new Set(
  'proxy-authenticate proxy-connection te trailer upgrade x-request-id set-cookie'.split(' '),
);

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

function trimBlank(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && (text.charCodeAt(start) === 0x20 || text.charCodeAt(start) === 0x09)) start += 1;
  while (end > start && (text.charCodeAt(end - 1) === 0x20 || text.charCodeAt(end - 1) === 0x09)) end -= 1;
  return text.slice(start, end);
}
