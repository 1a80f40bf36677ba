/**
 * Writes GGUF files of any size in the shapes of real models, for measurements of memory: the weights are noise, so the text they generate means nothing. The file is
 * written in blocks and never held in memory.
 */
import { randomFillSync } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { tensorBytes } from '../src/providers/gguf/decide/byte-cursor.ts';
import { buildVocabulary } from '../toolboxes/demo/demo-chat.ts';
import { text, u32, type GgufValue } from '../toolboxes/demo/encode-gguf.ts';

/** The number of a format in GGUF files. */
const FORMAT = { f32: 0, f16: 1, q4_0: 2, q8_0: 8 } as const;

export interface LargeTensor {
  readonly name: string;
  /** In the order of ggml, which puts the length of a row first. */
  readonly shape: readonly number[];
  readonly format: keyof typeof FORMAT;
}

export interface LargeModel {
  readonly architecture: string;
  /** Number of tokens; at least 400. */
  readonly vocabulary: number;
  /** Metadata below the architecture, such as `block_count`. */
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly tensors: readonly LargeTensor[];
}

const ALIGNMENT = 32;
const NOISE_BYTES = 2 ** 20;
/** The vocabulary begins with about so many tokens that are not words. */
const WITHOUT_WORDS = 400;

/** Writes the file and returns its size in bytes. */
export async function writeLargeModel(file: string, model: LargeModel): Promise<number> {
  const header = encodeHeader(model);
  const handle = await open(file, 'w');
  try {
    await handle.write(header);
    let bytes = header.length;
    for (const tensor of model.tensors) bytes += await writeNoise(handle, tensor);
    return bytes;
  } finally {
    await handle.close();
  }
}

function encodeHeader(model: LargeModel): Buffer {
  const metadata: (readonly [string, GgufValue])[] = [
    ['general.architecture', text(model.architecture)],
    ['general.name', text(`bench-${model.architecture}`)],
    [`${model.architecture}.vocab_size`, u32(model.vocabulary)],
    ...Object.entries(model.metadata).map(([key, value]) => [`${model.architecture}.${key}`, value] as const),
    ...vocabularyOf(model.vocabulary),
  ];
  const parts = [Buffer.from('GGUF'), uint32(3), uint64(model.tensors.length), uint64(metadata.length)];
  for (const [key, value] of metadata) parts.push(string(key), value);
  let offset = 0;
  for (const tensor of model.tensors) {
    const { name, shape, format } = tensor;
    parts.push(string(name), uint32(shape.length), ...shape.map(uint64), uint32(FORMAT[format]), uint64(offset));
    offset += paddedBytes(tensor);
  }
  return aligned(Buffer.concat(parts));
}

/** Numbers as words, so that each prefix of a word is a word too. */
function vocabularyOf(size: number): readonly (readonly [string, GgufValue])[] {
  const wordsFor = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `▁${index}`);
  const options = { end: false, spacePrefix: false };
  const few = buildVocabulary(wordsFor(size - WITHOUT_WORDS), options).tokens.length;
  return buildVocabulary(wordsFor(size - WITHOUT_WORDS + (size - few)), options).metadata;
}

/** Bytes below 64 make small numbers in all formats, and no infinities. Norms are 1: with small ones, all answers would be equally probable. */
async function writeNoise(handle: FileHandle, tensor: LargeTensor): Promise<number> {
  const noise = tensor.name.endsWith('norm.weight')
    ? Buffer.from(new Float32Array(NOISE_BYTES / 4).fill(1).buffer)
    : randomFillSync(Buffer.alloc(NOISE_BYTES)).map((byte) => byte & 0x2f);
  const bytes = paddedBytes(tensor);
  for (let left = bytes; left > 0; left -= NOISE_BYTES) await handle.write(noise, 0, Math.min(NOISE_BYTES, left));
  return bytes;
}

function paddedBytes({ shape, format }: LargeTensor): number {
  const elements = shape.reduce((product, length) => product * length);
  return Math.ceil(tensorBytes(FORMAT[format], elements) / ALIGNMENT) * ALIGNMENT;
}

function aligned(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], Math.ceil(bytes.length / ALIGNMENT) * ALIGNMENT);
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
