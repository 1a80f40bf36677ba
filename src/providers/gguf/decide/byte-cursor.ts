/**
 * Reads little-endian values of the GGUF format one after the other, from a window of the file. Throws for the header's parser to catch. Pure except for its
 * position.
 */

export type Scalar = number | string | boolean;

/** The window ends before the value does; bytes that follow it are needed. */
export class EndOfBytes extends Error {}
/** The file is damaged. The message is part of a sentence and starts with "it" or "its". */
export class CorruptHeader extends Error {}

/** Longer than any text in a known model; chat templates have some ten thousand characters. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;
const STRING = 8;
const HIGH = 2 ** 32;
const LENGTH_BYTES = 8;

/** The scalar types of GGUF by their number, with their size in bytes. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
const SCALARS: Readonly<Record<number, readonly [size: number, get: (view: DataView, at: number) => Scalar]>> = {
  0: [1, (view, at) => view.getUint8(at)],
  1: [1, (view, at) => view.getInt8(at)],
  2: [2, (view, at) => view.getUint16(at, true)],
  3: [2, (view, at) => view.getInt16(at, true)],
  4: [4, (view, at) => view.getUint32(at, true)],
  5: [4, (view, at) => view.getInt32(at, true)],
  6: [4, (view, at) => view.getFloat32(at, true)],
  7: [1, (view, at) => view.getUint8(at) !== 0],
  10: [8, (view, at) => Number(view.getBigUint64(at, true))],
  11: [8, (view, at) => Number(view.getBigInt64(at, true))],
  12: [8, (view, at) => view.getFloat64(at, true)],
};

// oxlint-disable-next-line house/pure-decide -- lives as long as the parser of one header; a position passed along as a value would make each read return a pair
export class ByteCursor {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  /** Where in the file the window starts. */
  readonly #start: number;
  /** In the file. It may be behind the window after a skip. */
  position: number;

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#start = start;
    this.position = start;
  }

  /** Whether the next byte is in the window. */
  get hasMore(): boolean {
    return this.position - this.#start < this.#bytes.length;
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** Reads a count. `what` names the counted things in the message about a count above `max`. */
  u64(what: string, max: number): number {
    const at = this.#take(8);
    const value = this.#view.getUint32(at + 4, true) * HIGH + this.#view.getUint32(at, true);
    if (value > max) throw new CorruptHeader(`it claims to have ${value} ${what}`);
    return value;
  }

  text(maxBytes: number): string {
    const length = this.u64('characters in one text', maxBytes);
    const at = this.#take(length);
    return new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }

  /** Returns the length in bytes of the text that comes next, and stays before it. */
  textBytes(): number {
    const before = this.position;
    const length = this.u64('characters in one text', MAX_TEXT_BYTES);
    this.position = before;
    return length;
  }

  skipText(): void {
    this.skip(this.u64('characters in one text', MAX_TEXT_BYTES));
  }

  /**
   * Skips up to `count` texts, as many as begin in the window, and returns how many. A vocabulary has several hundred thousand, so that this loop decides how long a
   * header takes.
   */
  skipTexts(count: number): number {
    const view = this.#view;
    const last = this.#bytes.length - LENGTH_BYTES;
    let at = this.position - this.#start;
    let skipped = 0;
    while (skipped < count && at <= last) {
      const length = view.getUint32(at, true);
      if (length > MAX_TEXT_BYTES || view.getUint32(at + 4, true) !== 0) break;
      at += LENGTH_BYTES + length;
      skipped += 1;
    }
    this.position = this.#start + at;
    // What ended the loop is a text that the window does not hold, or a length that is refused.
    if (skipped === 0) {
      this.skipText();
      return 1;
    }
    return skipped;
  }

  /** Reads a scalar that is not a text. */
  scalar(type: number): Scalar {
    const [size, get] = scalarOf(type);
    return get(this.#view, this.#take(size));
  }

  /** Moves on by a number of bytes, of which those behind the window need not be read. */
  skip(bytes: number): void {
    this.position += bytes;
  }

  /** Moves on by a number of bytes and returns where in the window the first one is. */
  #take(bytes: number): number {
    const at = this.position - this.#start;
    if (at + bytes > this.#bytes.length) throw new EndOfBytes();
    this.position += bytes;
    return at;
  }
}

export const isText = (type: number): boolean => type === STRING;

/** Returns the size in bytes of a scalar that is not a text. */
export function sizeOf(type: number): number {
  return scalarOf(type)[0];
}

function scalarOf(type: number): (typeof SCALARS)[number] {
  const scalar = SCALARS[type];
  if (scalar === undefined) throw new CorruptHeader(`it has a value of the unknown type ${type}`);
  return scalar;
}

/** The sizes of tensors, from ggml's block formats by their number in GGUF files. Pure. */

/** Elements and bytes per block. The missing numbers belong to formats that were removed from ggml. */
const BLOCKS: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  0: [1, 4], // F32
  1: [1, 2], // F16
  2: [32, 18], // Q4_0
  3: [32, 20], // Q4_1
  6: [32, 22], // Q5_0
  7: [32, 24], // Q5_1
  8: [32, 34], // Q8_0
  9: [32, 36], // Q8_1
  10: [256, 84], // Q2_K
  11: [256, 110], // Q3_K
  12: [256, 144], // Q4_K
  13: [256, 176], // Q5_K
  14: [256, 210], // Q6_K
  15: [256, 292], // Q8_K
  16: [256, 66], // IQ2_XXS
  17: [256, 74], // IQ2_XS
  18: [256, 98], // IQ3_XXS
  19: [256, 50], // IQ1_S
  20: [32, 18], // IQ4_NL
  21: [256, 110], // IQ3_S
  22: [256, 82], // IQ2_S
  23: [256, 136], // IQ4_XS
  24: [1, 1], // I8
  25: [1, 2], // I16
  26: [1, 4], // I32
  27: [1, 8], // I64
  28: [1, 8], // F64
  29: [256, 56], // IQ1_M
  30: [1, 2], // BF16
  34: [256, 54], // TQ1_0
  35: [256, 66], // TQ2_0
  39: [32, 17], // MXFP4
};

/** Returns the size of a tensor in bytes, or 0 for an unknown format: sums of sizes are lower bounds. */
export function tensorBytes(type: number, elements: number): number {
  const block = BLOCKS[type];
  return block === undefined ? 0 : Math.ceil(elements / block[0]) * block[1];
}
