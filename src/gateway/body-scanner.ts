/**
 * Finds `model` at the top level of a JSON object that arrives in pieces. It is not a JSON parser: nested values are skipped, so a text that is
 * invalid below the top level is left to the upstream. What is `invalid` here is never a JSON object for `JSON.parse`. If a key is repeated, the last one
 * counts, as in `JSON.parse`; a caller that stops early, because the body is too large to keep, uses the first, which is harmless: an upstream serves one model.
 * The scanner is a state machine: `#place` goes from `start` over `first-key`, `in-key`, `colon`, `value` and `after-value` to `end`.
 */
import type { BodyProblem, BodyScan } from './body-scan.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** `model` with each character written as `\uXXXX` has 30 bytes, so a longer key can be skipped. */
const KEY_LIMIT = 30;
/** Far longer than a slot, alias or model id; keeps a hostile name out of memory and messages. */
const MODEL_LIMIT = 4096;
/** Bytes to examine one by one before the native search is used, because a call costs more than a short string. */
const NATIVE_SEARCH_FROM = 48;

type Place = 'start' | 'first-key' | 'key' | 'in-key' | 'colon' | 'value' | 'in-string' | 'in-scalar' | 'in-nested' | 'after-value' | 'end';

/** A class for speed, since there is one per request. */
// oxlint-disable-next-line house/function-length -- One state machine over the bytes of the body, on the hot path: its states share all of its fields
export class BodyScanner implements BodyScan {
  status: BodyScan['status'] = 'more';
  /** `null` counts as a missing model. */
  modelSeen = false;
  model: string | undefined = undefined;
  problem: BodyProblem | undefined = undefined;
  readonly unfinished = 'Close the JSON object in the body: the text ends too early';
  #place: Place = 'start';
  /** The current field is `model`. */
  #inModel = false;
  /** Depth inside a nested value. A counter instead of a stack, so that deep nesting costs no memory. */
  #depth = 0;
  #inNestedString = false;
  /** The bytes fed so far end inside a string with an odd number of backslashes, so the next byte is escaped. */
  #escaped = false;
  #captured = '';
  #capturing = false;
  #captureLimit = 0;
  #marksSeen = 0;

  /** Only white space is allowed after the end of the object. */
  feed(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && this.status !== 'invalid') at = this.#step(chunk, at);
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
      this.#depth = 1;
      this.#place = 'in-nested';
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
    this.#escaped = false;
  }

  #string(chunk: Uint8Array, at: number): number {
    const end = this.#stringEnd(chunk, at);
    const stop = end === -1 ? chunk.length : end;
    if (this.#capturing) this.#capture(chunk, at, stop);
    if (end === -1) return chunk.length;
    if (this.#place === 'in-key') this.#endKey();
    else this.#endStringValue();
    return end + 1;
  }

  /** Returns the index of the closing quote in this chunk, or -1. Linear: each byte is examined once here and once by the native search. */
  #stringEnd(chunk: Uint8Array, at: number): number {
    let index = at;
    let escaped = this.#escaped;
    const near = Math.min(chunk.length, at + NATIVE_SEARCH_FROM);
    for (; index < near; index += 1) {
      const byte = chunk[index];
      if (escaped) escaped = false;
      else if (byte === QUOTE) return this.#found(index);
      else if (byte === BACKSLASH) escaped = true;
    }
    while (index < chunk.length) {
      const quote = chunk.indexOf(QUOTE, index);
      const stop = quote === -1 ? chunk.length : quote;
      let run = 0;
      while (stop - run > index && chunk[stop - run - 1] === BACKSLASH) run += 1;
      const odd = run % 2 === 1;
      escaped = run === stop - index && escaped ? !odd : odd;
      if (quote === -1) break;
      if (!escaped) return this.#found(quote);
      escaped = false;
      index = quote + 1;
    }
    this.#escaped = escaped;
    return -1;
  }

  #found(index: number): number {
    this.#escaped = false;
    return index;
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
    this.#inModel = this.#capturing && decode(this.#captured) === 'model';
  }

  #endStringValue(): void {
    this.#place = 'after-value';
    if (!this.#inModel) return;
    this.modelSeen = true;
    const model = this.#capturing ? decode(this.#captured) : undefined;
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
    let index = at;
    while (index < chunk.length) {
      if (this.#inNestedString) {
        const end = this.#stringEnd(chunk, index);
        if (end === -1) return chunk.length;
        this.#inNestedString = false;
        index = end + 1;
        continue;
      }
      const byte = chunk[index];
      index += 1;
      if (byte === QUOTE) this.#inNestedString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth += 1;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        this.#place = 'after-value';
        return index;
      }
    }
    return index;
  }

  /** Not final: a later valid `model` replaces it, as in `JSON.parse`. */
  #wrongModel(): void {
    if (!this.#inModel) return;
    this.modelSeen = true;
    this.model = undefined;
    this.problem = { message: `Write "model" as a string of at most ${MODEL_LIMIT} bytes`, param: 'model' };
  }

  #fail(message: string): void {
    this.status = 'invalid';
    this.problem = { message, param: null };
  }
}

/** Decodes a JSON string from its raw bytes, one character per byte. Undefined if it is not a valid string. */
function decode(raw: string): string | undefined {
  let ascii = true;
  for (let index = 0; index < raw.length; index += 1) {
    const code = raw.charCodeAt(index);
    if (code < 0x20) return undefined;
    if (code === BACKSLASH || code > 0x7e) ascii = false;
  }
  if (ascii) return raw;
  try {
    const parsed: unknown = JSON.parse(`"${Buffer.from(raw, 'latin1').toString('utf8')}"`);
    return typeof parsed === 'string' ? parsed : undefined;
  } catch {
    return undefined;
  }
}
