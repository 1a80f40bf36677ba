/** Reads GGUF values from a window of the file. Throws for the header parser. Pure except for its position. */
export type Scalar = number | string | boolean;

export class EndOfBytes extends Error {}
/** Damaged file. The message is a clause about "it" or "its". */
export class CorruptHeader extends Error {}

/** Longer than any string of a known model; chat templates have some ten thousand characters. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;
const STRING = 8;
const HIGH = 2 ** 32;
const LENGTH_BYTES = 8;

/** Scalar types by number, with their size in bytes. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
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
  readonly #start: number;
  /** Offset in the file; after a skip maybe behind the window. */
  position: number;

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#start = start;
    this.position = start;
  }

  get hasMore(): boolean {
    return this.position - this.#start < this.#bytes.length;
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** `what` names the counted things in the message. */
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

  textBytes(): number {
    const before = this.position;
    const length = this.u64('characters in one text', MAX_TEXT_BYTES);
    this.position = before;
    return length;
  }

  skipText(): void {
    this.skip(this.u64('characters in one text', MAX_TEXT_BYTES));
  }

  /** Skips up to `count` strings in the window and returns how many. The hot loop: vocabularies are large. */
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
    // A string beyond the window, or a refused length.
    if (skipped === 0) {
      this.skipText();
      return 1;
    }
    return skipped;
  }

  scalar(type: number): Scalar {
    const [size, get] = scalarOf(type);
    return get(this.#view, this.#take(size));
  }

  skip(bytes: number): void {
    this.position += bytes;
  }

  #take(bytes: number): number {
    const at = this.position - this.#start;
    if (at + bytes > this.#bytes.length) throw new EndOfBytes();
    this.position += bytes;
    return at;
  }
}

export const isText = (type: number): boolean => type === STRING;
export const sizeOf = (type: number): number => scalarOf(type)[0];

function scalarOf(type: number): (typeof SCALARS)[number] {
  const scalar = SCALARS[type];
  if (scalar === undefined) throw new CorruptHeader(`it has a value of the unknown type ${type}`);
  return scalar;
}

/** Type number, name, elements and bytes per block of ggml. Missing numbers were removed from ggml. */
const BLOCKS = [
  '0 F32 1/4, 1 F16 1/2, 2 Q4_0 32/18, 3 Q4_1 32/20, 6 Q5_0 32/22, 7 Q5_1 32/24, 8 Q8_0 32/34, 9 Q8_1 32/36',
  '10 Q2_K 256/84, 11 Q3_K 256/110, 12 Q4_K 256/144, 13 Q5_K 256/176, 14 Q6_K 256/210, 15 Q8_K 256/292, 16 IQ2_XXS 256/66, 17 IQ2_XS 256/74',
  '18 IQ3_XXS 256/98, 19 IQ1_S 256/50, 20 IQ4_NL 32/18, 21 IQ3_S 256/110, 22 IQ2_S 256/82, 23 IQ4_XS 256/136, 24 I8 1/1, 25 I16 1/2',
  '26 I32 1/4, 27 I64 1/8, 28 F64 1/8, 29 IQ1_M 256/56, 30 BF16 1/2, 34 TQ1_0 256/54, 35 TQ2_0 256/66, 39 MXFP4 32/17',
]
  .flatMap((row) => row.split(', '))
  .map((entry) => entry.split(/[ /]/))
  .map(([type, name = '', elements, bytes]) => [Number(type), name.toLowerCase(), Number(elements), Number(bytes)] as const);
const BLOCK_OF_TYPE = new Map(BLOCKS.map(([type, , elements, bytes]) => [type, { elements, bytes }]));
const NUMBER_BYTES = new Map(BLOCKS.map(([, name, elements, bytes]) => [name, bytes / elements]));

/** 0 for an unknown format, as sums are lower bounds. */
export function tensorBytes(type: number, elements: number): number {
  const block = BLOCK_OF_TYPE.get(type);
  return block === undefined ? 0 : Math.ceil(elements / block.elements) * block.bytes;
}

/** Bytes per number of a type such as `q8_0`; an unknown one has 16 bits. */
export const numberBytes = (name: string): number => NUMBER_BYTES.get(name) ?? 2;
