/**
 * Finds URLs of media in one value of a JSON body that arrives in pieces, at the places that `MediaPath` names. What cannot lead to such a place is skipped like every
 * other nested value. `data:` URLs, which carry the media themselves, are passed over without being kept. Text that is not valid JSON is left to the upstream.
 */
import type { MediaPath } from './decide/media-paths.ts';
import { decodeJsonString, JsonSkipper } from './json-skipper.ts';

export interface FoundUrl {
  /** Such as `messages[0].content[1].image_url.url`. */
  readonly param: string;
  readonly media: 'image' | 'other';
  /** Undefined if it is too long or not a valid string. */
  readonly url: string | undefined;
  /** Offsets of the string in the body, with its quotes. */
  readonly from: number;
  readonly to: number;
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
/** `image_url`, the longest of the keys, with each character written as `\uXXXX`. */
const KEY_LIMIT = 54;
/** Longer than any URL that servers accept. */
const URL_LIMIT = 8192;
/** `data:` with each character written as `\uXXXX`. */
const SCHEME_LIMIT = 30;
const DATA = /^data:/i;

interface Frame {
  readonly path: MediaPath;
  readonly isArray: boolean;
  index: number;
  key: string;
}

type Place = 'value' | 'key' | 'in-key' | 'in-url' | 'in-string' | 'in-nested';

/** A class for speed, since it holds the state between the pieces. */
export class MediaScanner {
  readonly #found: (url: FoundUrl) => void;
  readonly #skipper = new JsonSkipper();
  readonly #frames: Frame[] = [];
  /** The innermost of them. */
  #frame: Frame | undefined;
  #root = '';
  #place: Place = 'value';
  #captured = '';
  #urlFrom = 0;
  #media: FoundUrl['media'] = 'image';

  constructor(found: (url: FoundUrl) => void) {
    this.#found = found;
  }

  /** To be called with the brace or bracket that begins the value of a key at the top level. */
  begin(key: string, path: MediaPath, byte: number): void {
    this.#root = key;
    this.#open(path, byte);
  }

  /** Returns the index after the value, or -1 if it does not end in this chunk. `offset`: of the chunk in the body. */
  feed(chunk: Uint8Array, at: number, offset: number): number {
    let index = at;
    while (index < chunk.length) {
      const next = this.#step(chunk, index, offset);
      if (next === -1) return -1;
      index = next;
      if (this.#frame === undefined) return index;
    }
    return -1;
  }

  #step(chunk: Uint8Array, at: number, offset: number): number {
    switch (this.#place) {
      case 'in-nested': {
        const end = this.#skipper.nestedEnd(chunk, at);
        if (end !== -1) this.#place = 'value';
        return end;
      }
      case 'in-key':
      case 'in-url':
      case 'in-string':
        return this.#string(chunk, at, offset);
      default:
        return this.#structure(chunk[at] ?? 0, at, offset);
    }
  }

  #structure(byte: number, at: number, offset: number): number {
    const frame = this.#frame;
    if (frame === undefined) return at;
    switch (byte) {
      case QUOTE:
        this.#beginString(frame, offset + at);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET: {
        const path = pathIn(frame);
        if (path === undefined || (byte === OPEN_BRACE ? path.fields : path.items) === undefined) {
          this.#skipper.beginNested();
          this.#place = 'in-nested';
        } else this.#open(path, byte);
        break;
      }
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#frames.pop();
        this.#frame = this.#frames.at(-1);
        this.#place = 'value';
        break;
      case COMMA:
        frame.index += 1;
        frame.key = '';
        this.#place = frame.isArray ? 'value' : 'key';
        break;
      case COLON:
        this.#place = 'value';
        break;
      default:
    }
    return at + 1;
  }

  #open(path: MediaPath, byte: number): void {
    const isArray = byte === OPEN_BRACKET;
    this.#frame = { path, isArray, index: 0, key: '' };
    this.#frames.push(this.#frame);
    this.#place = isArray ? 'value' : 'key';
  }

  #beginString(frame: Frame, at: number): void {
    this.#skipper.beginString();
    this.#captured = '';
    if (this.#place === 'key') {
      this.#place = 'in-key';
      return;
    }
    const media = pathIn(frame)?.isUrl;
    this.#place = media === undefined ? 'in-string' : 'in-url';
    this.#media = media ?? 'other';
    this.#urlFrom = at;
  }

  #string(chunk: Uint8Array, at: number, offset: number): number {
    const end = this.#skipper.stringEnd(chunk, at);
    const stop = end === -1 ? chunk.length : end;
    if (this.#place === 'in-key') this.#captureKey(chunk, at, stop, end !== -1);
    else if (this.#place === 'in-url') this.#captureUrl(chunk, at, stop);
    if (end === -1) return -1;
    if (this.#place === 'in-key') this.#endKey();
    else if (this.#place === 'in-url') this.#endUrl(offset + end + 1);
    this.#place = 'value';
    return end + 1;
  }

  #endKey(): void {
    const frame = this.#frame;
    if (frame !== undefined && this.#captured !== '') frame.key = decodeJsonString(this.#captured) ?? '';
  }

  /** Most keys are "role", "type" and "text": none that is looked for has 4 or 5 bytes, with or without escapes. */
  #captureKey(chunk: Uint8Array, at: number, stop: number, ends: boolean): void {
    const bytes = stop - at;
    if (ends && this.#captured === '' && (bytes === 4 || bytes === 5)) return;
    this.#capture(chunk, at, stop, KEY_LIMIT);
  }

  #captureUrl(chunk: Uint8Array, at: number, stop: number): void {
    let index = at;
    if (this.#captured.length < SCHEME_LIMIT) {
      index = Math.min(stop, at + SCHEME_LIMIT - this.#captured.length);
      this.#capture(chunk, at, index, SCHEME_LIMIT);
      if (this.#captured.length < SCHEME_LIMIT) return;
      // The end of this one is found natively, and nothing of it is kept.
      if (beginsWithData(this.#captured)) this.#place = 'in-string';
    }
    if (this.#place === 'in-url') this.#capture(chunk, index, stop, URL_LIMIT);
  }

  #endUrl(to: number): void {
    if (beginsWithData(this.#captured)) return;
    const url = this.#captured.length > URL_LIMIT ? undefined : decodeJsonString(this.#captured);
    this.#found({ param: this.#param(), media: this.#media, url, from: this.#urlFrom, to });
  }

  /** Byte by byte, because the end of a chunk may split a character. One more than the limit shows that the text is longer. */
  #capture(chunk: Uint8Array, from: number, to: number, limit: number): void {
    for (let index = from; index < to && this.#captured.length <= limit; index += 1)
      this.#captured += String.fromCharCode(chunk[index] ?? 0);
  }

  #param(): string {
    return this.#frames.reduce((text, { isArray, index, key }) => (isArray ? `${text}[${index}]` : `${text}.${key}`), this.#root);
  }
}

function pathIn({ path, isArray, key }: Frame): MediaPath | undefined {
  return isArray ? path.items : path.fields?.get(key);
}

/** The text may end within an escape, which is then left out. */
function beginsWithData(captured: string): boolean {
  const text = captured.slice(0, SCHEME_LIMIT).replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, '');
  return DATA.test(decodeJsonString(text) ?? '');
}
