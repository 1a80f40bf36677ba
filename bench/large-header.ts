/** Reads the header of a file of 40 GB with the vocabulary of a large model. */
import { execFile } from 'node:child_process';
import { rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { encodeDemoModel } from '../toolboxes/demo/demo-models.ts';
import { encodeGguf, text, texts, u32 } from '../toolboxes/demo/encode-gguf.ts';
import { median } from './measure.ts';

const run = promisify(execFile);
const ROUNDS = 3;

export interface ReadHeader {
  readonly ms: number;
  readonly memoryBytes: number;
}

/** Reads the facts of a sparse file with a vocabulary of the largest known models, the first time, in a process of its own. */
export async function readLargeHeader(directory: string): Promise<ReadHeader> {
  const file = path.join(directory, 'm.gguf');
  await writeFile(file, headerWithVocabulary());
  await truncate(file, 40e9);
  await writeFile(path.join(directory, 'small.gguf'), encodeDemoModel('demo-fox'));
  const rounds: ReadHeader[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { stdout } = await run(process.execPath, ['bench/header-process.ts', directory]);
    const [ms = Number.NaN, memoryBytes = Number.NaN] = stdout.trim().split(' ').map(Number);
    rounds.push({ ms, memoryBytes });
  }
  await rm(file);
  return { ms: median(rounds.map(({ ms }) => ms)), memoryBytes: median(rounds.map(({ memoryBytes }) => memoryBytes)) };
}

/** 262,144 tokens and 514,906 merges, as Gemma 3 has: 13 MB. */
function headerWithVocabulary(): Uint8Array {
  const word = (index: number): string => `▁t${index.toString(36)}`;
  const tokens = Array.from({ length: 262_144 }, (_, index) => word(index));
  const merges = Array.from({ length: 514_906 }, (_, index) => `${word(index)} x`);
  return encodeGguf({
    metadata: [
      ['general.architecture', text('gemma3')],
      ['gemma3.block_count', u32(62)],
      ['gemma3.context_length', u32(131_072)],
      ['gemma3.embedding_length', u32(5376)],
      ['gemma3.attention.head_count', u32(32)],
      ['gemma3.attention.head_count_kv', u32(16)],
      ['tokenizer.ggml.tokens', texts(tokens)],
      ['tokenizer.ggml.merges', texts(merges)],
    ],
    tensors: [],
  });
}
