/**
 * Finds `model` at the top level of a JSON object that arrives in pieces. It is not a JSON parser: nested values are skipped, so a text that is
 * invalid below the top level is left to the upstream. What is `invalid` here is never a JSON object for `JSON.parse`. If a key is repeated, the last one
 * counts, as in `JSON.parse`; a caller that stops early, because the body is too large to keep, uses the first, which is harmless: an upstream serves one model.
 * The scanner is a state machine: `#place` goes from `start` over `first-key`, `in-key`, `colon`, `value` and `after-value` to `end`.
 */
import type { BodyProblem, BodyScan } from './body-scan.ts';
import { MEDIA_PATHS, type MediaPath } from './decide/media-paths.ts';
import { decodeJsonString, JsonSkipper } from './json-skipper.ts';
import { MediaScanner, type FoundUrl } from './media-scanner.ts';

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** `messages` with each character written as `\uXXXX` has 48 bytes, so a longer key can be skipped. */
const KEY_LIMIT = 48;
/** Far longer than a slot, alias or model id; keeps a hostile name out of memory and messages. */
const MODEL_LIMIT = 4096;

type Place = 'start' | 'first-key' | 'key' | 'in-key' | 'colon' | 'value' | 'in-string' | 'in-scalar' | 'in-nested' | 'after-value' | 'end';

/** What becomes of the URLs of media in a chat. */
export interface MediaRules {
  /** Those that were accepted. */
  readonly urls: readonly FoundUrl[];
  /** Bodies must be whole, because the URLs are to be replaced. */
  readonly keepsAll: boolean;
  /** Called for each URL that is found. Returns why the body is refused. */
  check(url: FoundUrl): BodyProblem | undefined;
}

/** A class for speed, since there is one per request. */
// oxlint-disable-next-line house/function-length -- One state machine over the bytes of the body, on the hot path: its states share all of its fields
export class BodyScanner implements BodyScan {
  status: BodyScan['status'] = 'more';
  /** `null` counts as a missing model. */
  modelSeen = false;
  model: string | undefined = undefined;
  problem: BodyProblem | undefined = undefined;
  readonly isForm = false;
  readonly readsAll: boolean;
  readonly keepsAll: boolean;
  readonly urls: readonly FoundUrl[];
  readonly unfinished = 'Close the JSON object in the body: the text ends too early';
  #place: Place = 'start';
  /** The current field is `model`. */
  #inModel = false;
  readonly #skipper = new JsonSkipper();
  /** Undefined if media is of no interest. */
  readonly #media: MediaScanner | undefined;
  /** What the current field holds of media. */
  #mediaPath: MediaPath | undefined;
  #inMedia = false;
  #key = '';
  /** Offset of the current chunk in the body. */
  #offset = 0;
  #captured = '';
  #capturing = false;
  #captureLimit = 0;
  #marksSeen = 0;

  /** `media` undefined: URLs of media are of no interest. */
  constructor(media?: MediaRules) {
    this.readsAll = media !== undefined;
    this.keepsAll = media?.keepsAll === true;
    this.urls = media?.urls ?? [];
    if (media === undefined) return;
    this.#media = new MediaScanner((url) => {
      const problem = this.status === 'invalid' ? undefined : media.check(url);
      if (problem !== undefined) this.#refuse(problem);
    });
  }

  /** Only white space is allowed after the end of the object. */
  feed(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && this.status !== 'invalid') at = this.#step(chunk, at);
    this.#offset += chunk.length;
  }

  #step(chunk: Uint8Array, at: number): number {
    switch (this.#place) {
      case 'in-key':
      case 'in-string':
        return this.#string(chunk, at);
      case 'in-nested':
        return this.#nested(chunk, at);
      case 'in-scalar':
        return this.#scalar(chunk, at);
      default:
        return this.#structure(chunk[at] ?? 0, at);
    }
  }

  #structure(byte: number, at: number): number {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1;
    switch (this.#place) {
      case 'start':
        if (byte === BYTE_ORDER_MARK[this.#marksSeen]) this.#marksSeen += 1;
        else if (byte === OPEN_BRACE && this.#marksSeen % BYTE_ORDER_MARK.length === 0) this.#place = 'first-key';
        else this.#fail('Send a JSON object as the body');
        return at + 1;
      case 'first-key':
      case 'key':
        if (byte === QUOTE) this.#beginString('in-key', KEY_LIMIT);
        else if (byte === CLOSE_BRACE && this.#place === 'first-key') this.#close();
        else this.#fail('Write a quoted key in the JSON object of the body');
        return at + 1;
      case 'colon':
        if (byte === COLON) this.#place = 'value';
        else this.#fail('Write a colon after each key of the body');
        return at + 1;
      case 'value':
        return this.#beginValue(byte, at);
      case 'after-value':
        if (byte === COMMA) this.#place = 'key';
        else if (byte === CLOSE_BRACE) this.#close();
        else this.#fail('Separate the fields of the body with commas');
        return at + 1;
      default:
        this.#fail('Send one JSON object and nothing after it');
        return at + 1;
    }
  }

  #close(): void {
    this.#place = 'end';
    this.status = this.problem === undefined ? 'done' : 'invalid';
  }

  #beginValue(byte: number, at: number): number {
    if (byte === QUOTE) {
      this.#beginString('in-string', this.#inModel ? MODEL_LIMIT : 0);
      return at + 1;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      this.#place = 'in-nested';
      this.#inMedia = this.#mediaPath !== undefined;
      if (this.#mediaPath === undefined) this.#skipper.beginNested();
      else this.#media?.begin(this.#key, this.#mediaPath, byte);
      this.#wrongModel();
      return at + 1;
    }
    const scalar = byte === 0x2d || (byte >= 0x30 && byte <= 0x39) || byte === 0x74 || byte === 0x66 || byte === 0x6e;
    if (!scalar) {
      this.#fail('Write a JSON value for each key of the body');
      return at + 1;
    }
    this.#captured = '';
    this.#place = 'in-scalar';
    return at;
  }

  #beginString(place: 'in-key' | 'in-string', captureLimit: number): void {
    this.#place = place;
    this.#captured = '';
    this.#capturing = captureLimit > 0;
    this.#captureLimit = captureLimit;
    this.#skipper.beginString();
  }

  #string(chunk: Uint8Array, at: number): number {
    const end = this.#skipper.stringEnd(chunk, at);
    const stop = end === -1 ? chunk.length : end;
    if (this.#capturing) this.#capture(chunk, at, stop);
    if (end === -1) return chunk.length;
    if (this.#place === 'in-key') this.#endKey();
    else this.#endStringValue();
    return end + 1;
  }

  #capture(chunk: Uint8Array, from: number, to: number): void {
    if (this.#captured.length + (to - from) > this.#captureLimit) {
      this.#capturing = false;
      return;
    }
    // Byte by byte, because the end of a chunk may split a character.
    for (let index = from; index < to; index += 1) this.#captured += String.fromCharCode(chunk[index] ?? 0);
  }

  #endKey(): void {
    this.#place = 'colon';
    this.#key = this.#capturing ? (decodeJsonString(this.#captured) ?? '') : '';
    this.#inModel = this.#key === 'model';
    this.#mediaPath = this.#media === undefined ? undefined : MEDIA_PATHS.get(this.#key);
  }

  #endStringValue(): void {
    this.#place = 'after-value';
    if (!this.#inModel) return;
    this.modelSeen = true;
    const model = this.#capturing ? decodeJsonString(this.#captured) : undefined;
    if (model === undefined) this.#wrongModel();
    else {
      this.model = model;
      this.problem = undefined;
    }
  }

  #scalar(chunk: Uint8Array, at: number): number {
    let index = at;
    for (; index < chunk.length; index += 1) {
      const byte = chunk[index] ?? 0;
      if (byte === COMMA || byte === CLOSE_BRACE || byte <= 0x20) {
        this.#endScalar();
        return index;
      }
      if (byte === QUOTE || byte === OPEN_BRACE || byte === OPEN_BRACKET || byte === CLOSE_BRACKET || byte === COLON) {
        this.#fail('Write a JSON value for each key of the body');
        return index;
      }
      if (this.#captured.length < 6) this.#captured += String.fromCharCode(byte);
    }
    return index;
  }

  #endScalar(): void {
    this.#place = 'after-value';
    if (!this.#inModel) return;
    if (this.#captured !== 'null') this.#wrongModel();
    else {
      this.modelSeen = true;
      this.model = undefined;
      this.problem = undefined;
    }
  }

  #nested(chunk: Uint8Array, at: number): number {
    const end = this.#inMedia ? (this.#media?.feed(chunk, at, this.#offset) ?? -1) : this.#skipper.nestedEnd(chunk, at);
    if (end === -1) return chunk.length;
    this.#place = 'after-value';
    return end;
  }

  /** Not final: a later valid `model` replaces it, as in `JSON.parse`. */
  #wrongModel(): void {
    if (!this.#inModel) return;
    this.modelSeen = true;
    this.model = undefined;
    this.problem = { message: `Write "model" as a string of at most ${MODEL_LIMIT} bytes`, param: 'model' };
  }

  #fail(message: string): void {
    this.#refuse({ message, param: null });
  }

  #refuse(problem: BodyProblem): void {
    this.status = 'invalid';
    this.problem = problem;
  }
}
