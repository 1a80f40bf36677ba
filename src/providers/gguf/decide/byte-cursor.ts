/** Reads little-endian values of the GGUF format one after the other. Throws for the header's parser to catch. Pure except for its position. */

export type Scalar = number | string | boolean;

/** The bytes end before the value does; more bytes of the file are needed. */
export class EndOfBytes extends Error {}
/** The file is damaged. The message is part of a sentence and starts with "it" or "its". */
export class CorruptHeader extends Error {}

/** Longer than any text in a known model; chat templates have some ten thousand characters. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;

const STRING = 8;

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

// oxlint-disable-next-line house/pure-decide -- lives within one call that parses a header; a position passed along as a value would make each read return a pair
export class ByteCursor {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(): number {
    return this.#view.getUint32(this.skip(4), true);
  }

  /** Reads a count. `what` names the counted things in the message about a count above `max`. */
  u64(what: string, max: number): number {
    const value = this.#view.getBigUint64(this.skip(8), true);
    if (value > BigInt(max)) throw new CorruptHeader(`it claims to have ${value} ${what}`);
    return Number(value);
  }

  text(maxBytes = MAX_TEXT_BYTES): string {
    const length = this.u64('characters in one text', maxBytes);
    const at = this.skip(length);
    return new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }

  skipText(): void {
    this.skip(this.u64('characters in one text', MAX_TEXT_BYTES));
  }

  scalar(type: number): Scalar {
    if (type === STRING) return this.text();
    const [size, get] = scalarOf(type);
    return get(this.#view, this.skip(size));
  }

  /** Returns the size in bytes of a scalar that is not a text. */
  sizeOf(type: number): number {
    return scalarOf(type)[0];
  }

  /** Moves on by a number of bytes and returns the position of the first one. */
  skip(bytes: number): number {
    const at = this.position;
    if (at + bytes > this.#bytes.length) throw new EndOfBytes();
    this.position = at + bytes;
    return at;
  }
}

function scalarOf(type: number): (typeof SCALARS)[number] {
  const scalar = SCALARS[type];
  if (scalar === undefined) throw new CorruptHeader(`it has a value of the unknown type ${type}`);
  return scalar;
}
