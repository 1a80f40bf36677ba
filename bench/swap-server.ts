/** A llama-server as the provider starts it, for measurements of what it computes again: prompts are tokens, and answers have a few at temperature 0. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { createReadAhead } from '../src/models/read-ahead.ts';
import { createModelReader } from '../src/models/read-model.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import type { Sized } from '../src/providers/provider.ts';
import { PROVIDERS } from '../src/providers/registry.ts';
import { parseSlot } from '../src/schema/slot/slot-spec.ts';
import { ModelId, SlotName } from '../src/schema/words/names.ts';
import { startLlamaServer, type LlamaServer, type WantedServer } from './llama-server.ts';

const run = promisify(execFile);
const NAME = SlotName.parse('primary');

export interface Answer {
  readonly firstTokenMs: number;
  /** Tokens of the prompt that were computed. */
  readonly computed: number;
  readonly tokens: readonly number[];
}

export interface Wanted extends Pick<WantedServer, 'onLine'> {
  /** The directory of the model and of the prompt files. */
  readonly directory: string;
  readonly file: string;
  /** Count before those of a measurement with one place. */
  readonly args?: readonly string[];
}

export async function startForSwap({ directory, file, args = [], ...more }: Wanted): Promise<LlamaServer> {
  const all = ['--slot-save-path', directory, '--parallel', '1', ...args];
  const parsed = parseSlot(NAME, { provider: 'gguf', backend: 'cpu', model: { default: file, args: all } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return await startLlamaServer({ name: NAME, spec: parsed.spec, model: await readModel(directory, file), directory, ...more });
}

async function readModel(directory: string, file: string): Promise<Sized> {
  const read = await createModelReader(directory, [gguf.models]).read(ModelId.parse(file), file);
  if (read.kind !== 'present') throw new Error(JSON.stringify(read));
  return read.facts;
}

/** Drops the pages of this file alone from the page cache. No process may have it mapped. */
export async function dropPages(file: string): Promise<void> {
  await run('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
}

/** Reads the file as the service does before a swap. Returns how long it took, in milliseconds. Rejects if the file was in memory. */
export async function readAhead(directory: string, file: string): Promise<number> {
  const model = await readModel(directory, file);
  await dropPages(path.join(directory, file));
  const from = performance.now();
  await new Promise<void>((resolve, reject) => {
    createReadAhead({ providers: PROVIDERS }).follow([{ slot: NAME, model }], (_slot, { doneBytes, totalBytes, wasCached, problem }) => {
      if (wasCached === true || problem !== undefined) reject(new Error(`Not read ahead: ${problem ?? 'it was in memory'}`));
      if (doneBytes === totalBytes) resolve();
    });
  });
  return performance.now() - from;
}

export async function ask({ url }: LlamaServer, prompt: readonly number[], count = 4): Promise<Answer> {
  const from = performance.now();
  const answer = await fetch(`${url}/completion`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt, n_predict: count, temperature: 0, stream: true, return_tokens: true }),
  });
  let text = '';
  let firstTokenMs: number | undefined;
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    // Comments come before, every two seconds.
    if (/^data: /m.test(text)) firstTokenMs ??= performance.now() - from;
  }
  const computed = /"prompt_n":(\d+)/.exec(text)?.[1];
  if (firstTokenMs === undefined || computed === undefined) throw new Error(`An unexpected answer: ${text.slice(0, 500)}`);
  const tokens = [...text.matchAll(/"tokens":\[([\d,]+)\]/g)].flatMap(([, list = '']) => list.split(',').map(Number));
  return { firstTokenMs, computed: Number(computed), tokens: tokens.slice(0, count) };
}

export interface Moved {
  readonly ms: number;
  readonly status: number;
  readonly body: string;
}

/** Saves or restores the first place of the server. */
export async function move({ url }: LlamaServer, action: 'save' | 'restore', file: string): Promise<Moved> {
  const from = performance.now();
  const answer = await fetch(`${url}/slots/0?action=${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ filename: file }),
  });
  const body = await answer.text();
  return { ms: performance.now() - from, status: answer.status, body };
}
