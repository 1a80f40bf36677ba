/** Steps through little-endian bytes; what does not fit is thrown, for the header's reader to catch. Pure but for its position. */

export type Scalar = number | string | boolean;

/** The bytes end too early: with more of the file the reading may go on. */
export class Short extends Error {}
/** No more bytes will help. The message continues "The file is damaged: ". */
export class Corrupt extends Error {}

/** No text of a model is longer; chat templates have some ten thousand characters. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;

/** GGUF's scalar types by number: bytes, and how to read them. */
const SCALARS: readonly (readonly [size: number, read: (view: DataView, at: number) => Scalar])[] = [
  [1, (view, at) => view.getUint8(at)],
  [1, (view, at) => view.getInt8(at)],
  [2, (view, at) => view.getUint16(at, true)],
  [2, (view, at) => view.getInt16(at, true)],
  [4, (view, at) => view.getUint32(at, true)],
  [4, (view, at) => view.getInt32(at, true)],
  [4, (view, at) => view.getFloat32(at, true)],
  [1, (view, at) => view.getUint8(at) !== 0],
];
const STRING = 8;
const WIDE_SCALARS: Readonly<Record<number, (view: DataView, at: number) => Scalar>> = {
  10: (view, at) => Number(view.getBigUint64(at, true)),
  11: (view, at) => Number(view.getBigInt64(at, true)),
  12: (view, at) => view.getFloat64(at, true),
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
    return this.#view.getUint32(this.#advance(4), true);
  }

  /** `what` and its greatest number, for the message of a count that cannot be. */
  u64(what: string, most: number): number {
    const value = this.#view.getBigUint64(this.#advance(8), true);
    if (value > BigInt(most)) throw new Corrupt(`it says it has ${value} ${what}`);
    return Number(value);
  }

  text(mostBytes = MAX_TEXT_BYTES): string {
    const length = this.u64('characters in one text', mostBytes);
    const at = this.#advance(length);
    return new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }

  skipText(): void {
    this.skip(this.u64('characters in one text', MAX_TEXT_BYTES));
  }

  skip(bytes: number): void {
    this.#advance(bytes);
  }

  scalar(type: number): Scalar {
    if (type === STRING) return this.text();
    const size = this.sizeOf(type);
    const read = SCALARS[type]?.[1] ?? WIDE_SCALARS[type];
    if (read === undefined) throw new Corrupt(`it has a value of the unknown type ${type}`);
    return read(this.#view, this.#advance(size));
  }

  /** Bytes of a scalar that is no text. */
  sizeOf(type: number): number {
    const size = type in WIDE_SCALARS ? 8 : SCALARS[type]?.[0];
    if (size === undefined) throw new Corrupt(`it has a value of the unknown type ${type}`);
    return size;
  }

  #advance(bytes: number): number {
    const at = this.position;
    if (at + bytes > this.#bytes.length) throw new Short();
    this.position = at + bytes;
    return at;
  }
}
