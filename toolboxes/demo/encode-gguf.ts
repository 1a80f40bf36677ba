/**
 * Encodes GGUF version 3 with float32 tensors: the part of the format that the generated models need. Pure.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

/** A metadata value with its type, encoded. */
export type GgufValue = Buffer;

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

/** Tensor offsets are multiples of this. It is the default of the format, so it needs no metadata key. */
const ALIGNMENT = 32;
const VERSION = 3;
const TYPE_ID = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
const TENSOR_F32 = 0;

export const u32 = (value: number): GgufValue => Buffer.concat([uint32(TYPE_ID.u32), uint32(value)]);
export const f32 = (value: number): GgufValue => Buffer.concat([uint32(TYPE_ID.f32), float32(value)]);
export const bool = (value: boolean): GgufValue => Buffer.concat([uint32(TYPE_ID.bool), Buffer.of(value ? 1 : 0)]);
export const text = (value: string): GgufValue => Buffer.concat([uint32(TYPE_ID.string), string(value)]);
export const texts = (values: readonly string[]): GgufValue => array(TYPE_ID.string, values.map(string));
export const i32s = (values: readonly number[]): GgufValue => array(TYPE_ID.i32, values.map(int32));
export const f32s = (values: readonly number[]): GgufValue => array(TYPE_ID.f32, values.map(float32));

export function encodeGguf({ metadata, tensors }: GgufModel): Uint8Array {
  const data = tensors.map((tensor) => aligned(float32s(tensor.data)));
  let offset = 0;
  const descriptions = tensors.map(({ name, shape }, index) => {
    const description = [string(name), uint32(shape.length), ...shape.map(uint64), uint32(TENSOR_F32), uint64(offset)];
    offset += data[index]?.length ?? 0;
    return Buffer.concat(description);
  });
  const header = [Buffer.from('GGUF'), uint32(VERSION), uint64(tensors.length), uint64(metadata.length)];
  const values = metadata.map(([key, value]) => Buffer.concat([string(key), value]));
  return Buffer.concat([aligned(Buffer.concat([...header, ...values, ...descriptions])), ...data]);
}

/** Returns a tensor with the same value everywhere. */
export function filled(name: string, shape: readonly number[], value: 0 | 1): GgufTensor {
  return { name, shape, data: new Float32Array(shape.reduce((product, length) => product * length)).fill(value) };
}

function aligned(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], Math.ceil(bytes.length / ALIGNMENT) * ALIGNMENT);
}

function array(type: number, items: readonly Buffer[]): GgufValue {
  return Buffer.concat([uint32(TYPE_ID.array), uint32(type), uint64(items.length), ...items]);
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  return written(4, (bytes) => bytes.writeUInt32LE(value));
}

function int32(value: number): Buffer {
  return written(4, (bytes) => bytes.writeInt32LE(value));
}

function float32(value: number): Buffer {
  return written(4, (bytes) => bytes.writeFloatLE(value));
}

function float32s(values: Float32Array): Buffer {
  return written(values.length * 4, (bytes) => values.forEach((value, index) => bytes.writeFloatLE(value, index * 4)));
}

function uint64(value: number): Buffer {
  return written(8, (bytes) => bytes.writeBigUInt64LE(BigInt(value)));
}

function written(length: number, write: (bytes: Buffer) => unknown): Buffer {
  const bytes = Buffer.alloc(length);
  write(bytes);
  return bytes;
}
