/**
 * An incremental tokenizer of a JSON object that arrives in chunks. It reports the values at the places that a filter
 * names and skips the rest natively. Memory is bounded for any size and depth of the text. The top level is checked:
 * text that is `invalid` here is no object for `JSON.parse`. Nested text that is not JSON is passed over.
 */
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-skipper.ts';
import { decodeJsonString, JsonSkipper, latin1 } from './json-skipper.ts';

export interface JsonFilter<Tag> {
  /** Values at this place are reported with the tag. */
  readonly tag?: Tag;
  /** Items of an array at this place. */
  readonly items?: JsonFilter<Tag>;
  /** Fields of an object at this place. */
  readonly fields?: JsonFields<Tag>;
}

interface JsonFields<Tag> {
  readonly entries: readonly { readonly key: string; readonly bytes: Buffer; readonly filter: JsonFilter<Tag> }[];
  /** Bytes of the shortest key, and of the longest one with each character written as `\uXXXX`. */
  readonly shortest: number;
  readonly longest: number;
}

/** Offsets count bytes of the whole text. */
export interface JsonEvents<Tag> {
  /** `from` and `to` include the quotes. Call `JsonScanner.raw` for the text. */
  onString(tag: Tag, from: number, to: number): void;
  /** A number, `true`, `false` or `null`; up to its first 6 bytes. */
  onScalar(tag: Tag, raw: string, from: number, to: number): void;
  onOpen(tag: Tag, isArray: boolean, from: number): void;
  onClose?(tag: Tag, to: number): void;
}

/** Bytes of a string that `raw` can return. */
export const STRING_LIMIT = 8192;
const SCALAR_LIMIT = 6;

const COLON = 0x3a;
const EMPTY: Buffer = Buffer.alloc(0);
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

type Place = 'start' | 'first-key' | 'key' | 'in-key' | 'colon' | 'value' | 'in-string' | 'in-scalar' | 'in-nested' | 'after-value' | 'end';

/** At the top level. */
const EXPECTED: Readonly<Partial<Record<Place, readonly number[]>>> = {
  start: [OPEN_BRACE],
  'first-key': [QUOTE, CLOSE_BRACE],
  key: [QUOTE],
  colon: [COLON],
  value: [QUOTE, OPEN_BRACE, OPEN_BRACKET, ...Buffer.from('-0123456789tfn')],
  'after-value': [COMMA, CLOSE_BRACE],
};
const SCALAR_ENDS: readonly number[] = [COMMA, CLOSE_BRACE, CLOSE_BRACKET, QUOTE, OPEN_BRACE, OPEN_BRACKET, COLON];

/** A container on the way to a place of the filter. */
interface Frame<Tag> {
  readonly filter: JsonFilter<Tag>;
  readonly isArray: boolean;
  index: number;
  key: string;
  /** The filter of the current value. */
  inner: JsonFilter<Tag> | undefined;
}

export function jsonFields<Tag>(fields: Readonly<Record<string, JsonFilter<Tag>>>): JsonFields<Tag> {
  const entries = Object.entries(fields).map(([key, filter]) => ({ key, bytes: Buffer.from(key), filter }));
  const lengths = entries.map(({ bytes }) => bytes.length);
  return { entries, shortest: Math.min(...lengths), longest: Math.max(...lengths) * '\\uXXXX'.length };
}

/** A class for speed, since it holds the state between chunks. */
// oxlint-disable-next-line house/function-length -- One state machine on the hot path: its states share all of its fields
export class JsonScanner<Tag> {
  /** `more`: the object has not ended. `done`: only white space may follow. */
  status: 'more' | 'done' | 'invalid' = 'more';
  readonly #events: JsonEvents<Tag>;
  readonly #frames: Frame<Tag>[] = [];
  #frame: Frame<Tag>;
  #place: Place = 'start';
  #offset = 0;
  #marksSeen = 0;
  /** Offset of the current string or scalar. */
  #from = 0;
  /** Bytes of the current string or scalar in earlier chunks, one character each. */
  #captured = '';
  /** The rest of the current string. */
  #chunk = EMPTY;
  #at = 0;
  #stop = 0;
  readonly #skipper = new JsonSkipper();

  constructor(filter: JsonFilter<Tag>, events: JsonEvents<Tag>) {
    this.#events = events;
    this.#frame = { filter, isArray: false, index: 0, key: '', inner: undefined };
  }

  /** The state of the scanner; with `invalid`, what was expected instead of the next byte. */
  get place(): Place {
    return this.#place;
  }

  /** The place of the current value, such as `messages[0].content[1].image_url.url`. */
  get path(): string {
    const path = this.#frames.reduce((text, { isArray, index, key }) => (isArray ? `${text}[${index}]` : `${text}.${key}`), '');
    return path.slice(1);
  }

  /** Returns up to `limit` bytes of the current string between its quotes, one character each. Only for `onString`. */
  raw(limit: number): string {
    return this.#captured + latin1(this.#chunk, this.#at, Math.min(this.#stop, this.#at + limit - this.#captured.length));
  }

  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && this.status !== 'invalid') {
      switch (this.#place) {
        case 'in-key':
        case 'in-string':
          at = this.#string(chunk, at);
          break;
        case 'in-nested':
          at = this.#skipper.nestedEnd(chunk, at);
          if (at === -1) at = chunk.length;
          else this.#closed(at);
          break;
        case 'in-scalar':
          at = this.#scalar(chunk, at);
          break;
        default:
          at = this.#structure(chunk, at);
      }
    }
    this.#offset += chunk.length;
  }

  /** Reads up to the beginning of a key or value, or the end of the chunk. */
  #structure(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
      if (this.#frames.length <= 1 && !this.#checkTop(byte)) return at;
      switch (byte) {
        case QUOTE:
          this.#beginString(at);
          return at + 1;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          this.#open(byte === OPEN_BRACKET, at);
          if (this.#place === 'in-nested') return at + 1;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#close(at);
          break;
        case COMMA:
          this.#next(this.#frame);
          break;
        case COLON:
          this.#place = 'value';
          break;
        default:
          if (this.#place === 'start') break;
          this.#captured = String.fromCharCode(byte);
          this.#from = this.#offset + at;
          this.#place = 'in-scalar';
          return at + 1;
      }
    }
    return chunk.length;
  }

  #checkTop(byte: number): boolean {
    if (this.#place === 'start' && byte === BYTE_ORDER_MARK[this.#marksSeen]) {
      this.#marksSeen += 1;
      return true;
    }
    if (EXPECTED[this.#place]?.includes(byte) === true && (this.#place !== 'start' || this.#marksSeen % BYTE_ORDER_MARK.length === 0))
      return true;
    this.status = 'invalid';
    return false;
  }

  #next(frame: Frame<Tag>): void {
    this.#place = frame.isArray ? 'value' : 'key';
    frame.index += 1;
    if (frame.isArray) return;
    frame.key = '';
    frame.inner = undefined;
  }

  #open(isArray: boolean, at: number): void {
    if (this.#place === 'start') {
      this.#frames.push(this.#frame);
      this.#place = 'first-key';
      return;
    }
    const { inner } = this.#frame;
    if (inner?.tag !== undefined) this.#events.onOpen(inner.tag, isArray, this.#offset + at);
    if ((isArray ? inner?.items : inner?.fields) === undefined || inner === undefined) {
      this.#skipper.beginNested();
      this.#place = 'in-nested';
      return;
    }
    this.#frame = { filter: inner, isArray, index: 0, key: '', inner: isArray ? inner.items : undefined };
    this.#frames.push(this.#frame);
    this.#place = isArray ? 'value' : 'key';
  }

  #close(at: number): void {
    this.#frames.pop();
    const outer = this.#frames.at(-1);
    if (outer === undefined) {
      this.#place = 'end';
      this.status = 'done';
      return;
    }
    this.#frame = outer;
    this.#closed(at + 1);
  }

  #closed(to: number): void {
    this.#place = 'after-value';
    const tag = this.#frame.inner?.tag;
    if (tag !== undefined) this.#events.onClose?.(tag, this.#offset + to);
  }

  #beginString(at: number): void {
    this.#captured = '';
    this.#skipper.beginString();
    this.#from = this.#offset + at;
    this.#place = this.#place === 'key' || this.#place === 'first-key' ? 'in-key' : 'in-string';
  }

  #string(chunk: Buffer, at: number): number {
    const end = this.#skipper.stringEnd(chunk, at);
    const { filter, inner } = this.#frame;
    if (end === -1) {
      const limit = this.#place === 'in-key' ? (filter.fields?.longest ?? 0) + 1 : inner?.tag === undefined ? 0 : STRING_LIMIT;
      this.#captured += latin1(chunk, at, Math.min(chunk.length, at + limit - this.#captured.length));
      return chunk.length;
    }
    [this.#chunk, this.#at, this.#stop] = [chunk, at, end];
    if (this.#place === 'in-key') {
      this.#place = 'colon';
      this.#endKey(this.#frame);
    } else {
      this.#place = 'after-value';
      if (inner?.tag !== undefined) this.#events.onString(inner.tag, this.#from, this.#offset + end + 1);
    }
    this.#chunk = EMPTY;
    return end + 1;
  }

  #endKey(frame: Frame<Tag>): void {
    frame.inner = undefined;
    const { fields } = frame.filter;
    const bytes = this.#stop - this.#at;
    if (fields === undefined || (this.#captured === '' && bytes < fields.shortest)) return;
    let field = this.#captured === '' ? fields.entries.find((entry) => this.#isKey(entry.bytes)) : undefined;
    if (field === undefined && (this.#captured !== '' || this.#isEscaped())) {
      const key = decodeJsonString(this.raw(fields.longest + 1));
      field = fields.entries.find((entry) => entry.key === key);
    }
    if (field === undefined) return;
    frame.inner = field.filter;
    frame.key = field.key;
  }

  #isKey(bytes: Buffer): boolean {
    if (this.#stop - this.#at !== bytes.length) return false;
    for (let index = 0; index < bytes.length; index += 1) if (this.#chunk[this.#at + index] !== bytes[index]) return false;
    return true;
  }

  #isEscaped(): boolean {
    for (let at = this.#at; at < this.#stop; at += 1) if (this.#chunk[at] === BACKSLASH) return true;
    return false;
  }

  #scalar(chunk: Buffer, from: number): number {
    const tag = this.#frame.inner?.tag;
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte > 0x20 && !SCALAR_ENDS.includes(byte)) {
        if (this.#captured.length < SCALAR_LIMIT) this.#captured += String.fromCharCode(byte);
        continue;
      }
      this.#place = 'after-value';
      if (tag !== undefined) this.#events.onScalar(tag, this.#captured, this.#from, this.#offset + at);
      return at;
    }
    return chunk.length;
  }
}
