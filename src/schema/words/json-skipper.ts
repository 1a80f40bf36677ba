/** Finds the ends of strings and nested values in JSON that arrives in chunks, decodes strings, and bounds JSON. */

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const COMMA = 0x2c;
/** No body of the API has more than ten; code that reads JSON recursively stands a few thousand. */
const MOST_LEVELS = 100;
/** A thousand slots of a hundred values each. Parsed values take up to thirty times the memory of their text. */
const MOST_VALUES = 100_000;
/** A native copy of fewer bytes costs more than a loop. */
const NATIVE_COPY_FROM = 32;
/** Bytes to examine one by one before the native search is used, because a call costs more than a short string. */
const NATIVE_SEARCH_FROM = 8;

/** A class for speed, since it holds the state between the pieces. */
export class JsonSkipper {
  /** Depth inside a nested value. A counter instead of a stack, so that deep nesting costs no memory. */
  #depth = 0;
  #inNestedString = false;
  /** The bytes so far end inside a string with an odd number of backslashes, so the next byte is escaped. */
  #escaped = false;

  beginString(): void {
    this.#escaped = false;
  }

  /**
   * Returns the index of the closing quote in this chunk, or -1. Linear: each byte is examined once here, and at most
   * once by the native search. After an escaped quote more of them are likely, as in prose and code, so the search
   * begins again byte by byte.
   */
  stringEnd(chunk: Uint8Array, at: number): number {
    let index = at;
    let escaped = this.#escaped;
    while (index < chunk.length) {
      const near = Math.min(chunk.length, index + NATIVE_SEARCH_FROM);
      for (; index < near; index += 1) {
        const byte = chunk[index];
        if (escaped) escaped = false;
        else if (byte === QUOTE) return this.#found(index);
        else if (byte === BACKSLASH) escaped = true;
      }
      if (index === chunk.length) break;
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

  /** After the bracket or brace that begins a value. */
  beginNested(): void {
    this.#depth = 1;
    this.#escaped = false;
  }

  /** Returns the index after the nested value, or -1 if it does not end in this chunk. */
  nestedEnd(chunk: Uint8Array, at: number): number {
    let index = at;
    while (index < chunk.length) {
      if (this.#inNestedString) {
        const end = this.stringEnd(chunk, index);
        if (end === -1) return -1;
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
        if (this.#depth === 0) return index;
      }
    }
    return -1;
  }

  #found(index: number): number {
    this.#escaped = false;
    return index;
  }
}

/** Decodes a JSON string from its raw bytes, one character per byte. Undefined if it is not a valid string. */
export function decodeJsonString(raw: string): string | undefined {
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

/** One character for each byte, because the end of a chunk may split a character. */
export function latin1(chunk: Buffer, from: number, to: number): string {
  if (to - from > NATIVE_COPY_FROM) return chunk.toString('latin1', from, to);
  let text = '';
  for (let at = from; at < to; at += 1) text += String.fromCharCode(chunk[at] ?? 0);
  return text;
}

/** Says what makes JSON too expensive to parse. Any answer for invalid JSON. Pure, linear, without recursion. */
export function jsonExcess(json: string, { levels = MOST_LEVELS, values = MOST_VALUES } = {}): string | undefined {
  let depth = 0;
  let count = 0;
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index);
    if (code === QUOTE) {
      index = closingQuote(json, index);
      if (index === -1) return undefined;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      count += 1;
      if (depth > levels) return `The JSON is nested too deeply: send at most ${levels} levels of arrays and objects`;
    } else if (code === COMMA) count += 1;
    if (count > values) return `The JSON has too many values: send at most ${values}`;
  }
  return undefined;
}

function closingQuote(json: string, open: number): number {
  for (let quote = json.indexOf('"', open + 1); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let run = 0;
    while (json.charCodeAt(quote - run - 1) === BACKSLASH) run += 1;
    if (run % 2 === 0) return quote;
  }
  return -1;
}
