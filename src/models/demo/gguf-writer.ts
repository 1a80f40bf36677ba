/**
 * Encodes GGUF version 3 with float32 tensors: the part of the format that the generated models need. Pure.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

export type GgufValue =
  | { readonly type: 'u32' | 'i32' | 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'i32s' | 'f32s'; readonly value: readonly number[] };

export interface GgufTensor {
  readonly name: string;
  /** In the order of ggml, which puts the length of a row first. */
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export interface GgufModel {
  readonly metadata: readonly (readonly [key: string, value: GgufValue])[];
  readonly tensors: readonly GgufTensor[];
}

export const u32 = (value: number): GgufValue => ({ type: 'u32', value });
export const f32 = (value: number): GgufValue => ({ type: 'f32', value });
export const bool = (value: boolean): GgufValue => ({ type: 'bool', value });
export const text = (value: string): GgufValue => ({ type: 'string', value });
export const texts = (value: readonly string[]): GgufValue => ({ type: 'strings', value });
export const i32s = (value: readonly number[]): GgufValue => ({ type: 'i32s', value });
export const f32s = (value: readonly number[]): GgufValue => ({ type: 'f32s', value });

/** Tensor offsets are multiples of this. It is the default of the format, so it needs no metadata key. */
const ALIGNMENT = 32;
const VERSION = 3;
const TYPE_ID = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
const TENSOR_F32 = 0;

export function encodeGguf(model: GgufModel): Uint8Array {
  const header = new ByteWriter();
  header.bytes(new TextEncoder().encode('GGUF'));
  header.u32(VERSION);
  header.u64(model.tensors.length);
  header.u64(model.metadata.length);
  for (const [key, value] of model.metadata) {
    header.string(key);
    writeValue(header, value);
  }
  let offset = 0;
  for (const tensor of model.tensors) {
    header.string(tensor.name);
    header.u32(tensor.shape.length);
    for (const length of tensor.shape) header.u64(length);
    header.u32(TENSOR_F32);
    header.u64(offset);
    offset = align(offset + tensor.data.length * 4);
  }
  const dataStart = align(header.length);
  const file = new Uint8Array(dataStart + offset);
  file.set(header.toBytes(), 0);
  const view = new DataView(file.buffer);
  let position = dataStart;
  for (const tensor of model.tensors) {
    tensor.data.forEach((value, index) => view.setFloat32(position + index * 4, value, true));
    position = align(position + tensor.data.length * 4);
  }
  return file;
}

function writeValue(out: ByteWriter, value: GgufValue): void {
  switch (value.type) {
    case 'u32':
    case 'i32':
    case 'f32':
      out.u32(TYPE_ID[value.type]);
      out.number(value.type, value.value);
      break;
    case 'bool':
      out.u32(TYPE_ID.bool);
      out.bytes(Uint8Array.of(value.value ? 1 : 0));
      break;
    case 'string':
      out.u32(TYPE_ID.string);
      out.string(value.value);
      break;
    case 'strings':
      writeArrayHead(out, TYPE_ID.string, value.value.length);
      for (const item of value.value) out.string(item);
      break;
    case 'i32s':
    case 'f32s': {
      const item = value.type === 'i32s' ? 'i32' : 'f32';
      writeArrayHead(out, TYPE_ID[item], value.value.length);
      for (const number of value.value) out.number(item, number);
      break;
    }
    default:
      value satisfies never;
  }
}

function writeArrayHead(out: ByteWriter, type: number, length: number): void {
  out.u32(TYPE_ID.array);
  out.u32(type);
  out.u64(length);
}

function align(position: number): number {
  return Math.ceil(position / ALIGNMENT) * ALIGNMENT;
}

/** A growing little-endian buffer. */
class ByteWriter {
  #buffer = new Uint8Array(1 << 16);
  #view = new DataView(this.#buffer.buffer);
  length = 0;

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  u32(value: number): void {
    this.number('u32', value);
  }

  u64(value: number): void {
    this.#reserve(8);
    this.#view.setBigUint64(this.length, BigInt(value), true);
    this.length += 8;
  }

  number(type: 'u32' | 'i32' | 'f32', value: number): void {
    this.#reserve(4);
    if (type === 'f32') this.#view.setFloat32(this.length, value, true);
    else if (type === 'i32') this.#view.setInt32(this.length, value, true);
    else this.#view.setUint32(this.length, value, true);
    this.length += 4;
  }

  string(value: string): void {
    const bytes = new TextEncoder().encode(value);
    this.u64(bytes.length);
    this.bytes(bytes);
  }

  toBytes(): Uint8Array {
    return this.#buffer.slice(0, this.length);
  }

  #reserve(count: number): void {
    if (this.length + count <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(this.#buffer.length * 2, this.length + count));
    grown.set(this.#buffer);
    this.#buffer = grown;
    this.#view = new DataView(grown.buffer);
  }
}
