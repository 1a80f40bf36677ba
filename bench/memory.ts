/**
 * Compares what the provider expects a llama-server to need with what it takes. Generated models of at least 500 MB are served as the provider would start them, at contexts
 * from 4,096 to 131,072 tokens; then prompts are sent until its cache of prompts is full, and the memory of the process is read. Needs llama-server on the PATH, or
 * podman with the image that `toolboxes/gguf` describes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { encodeDemoModel } from '../toolboxes/demo/demo-models.ts';
import { createModelReader } from '../src/models/read-model.ts';
import type { Sized } from '../src/providers/provider.ts';
import { ggufModel } from '../src/providers/gguf/decide/gguf-model.ts';
import { chooseLayout } from '../src/providers/gguf/decide/server-layout.ts';
import { cacheBytes, type ServerLayout } from '../src/providers/gguf/decide/gguf-memory.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import { ModelId, SlotName } from '../src/schema/words/names.ts';
import { parseSlot, type SlotSpec } from '../src/schema/slot/slot-spec.ts';
import { startLlamaServer, type LlamaServer } from './llama-server.ts';
import { writeLargeModel, type LargeModel } from './large-model.ts';
import { denseModel, expertModel, latentModel, recurrentModel, windowModel } from './large-shapes.ts';
import { atMost, type Row } from './measure.ts';

const MIB = 2 ** 20;
const NAME = SlotName.parse('primary');
const CONTEXTS = (process.env['SVC_BENCH_CONTEXTS']?.split(' ') ?? [4096, 16_384, 32_768, 65_536, 131_072]).map(Number);
const GOAL_PERCENT = 15;
const PROMPT_TOKENS = 2048;
/** Tokens that all models but the one for the baseline have. */
const FIRST_TOKEN = 300;
const TOKENS = 3500;

const SIZES = { context: 131_072, format: 'q8_0' } as const;
/** Most of a file is in experts or in the vocabulary, so that little is computed for each token. */
const MODELS: Readonly<Record<string, LargeModel>> = {
  experts: expertModel(
    { ...SIZES, vocabulary: 4000, layers: 8, width: 256, heads: 4, headsKv: 2, headLength: 128, feedForward: 256 },
    330,
    1,
  ),
  windows: windowModel(
    { ...SIZES, vocabulary: 220_000, layers: 24, width: 1024, heads: 4, headsKv: 2, headLength: 128, feedForward: 1024 },
    1024,
  ),
  dense: denseModel({ ...SIZES, vocabulary: 220_000, layers: 12, width: 1024, heads: 8, headsKv: 4, headLength: 128, feedForward: 2048 }),
  latent: latentModel(
    { ...SIZES, vocabulary: 220_000, layers: 12, width: 1024, heads: 8, headsKv: 1, headLength: 64, feedForward: 2048 },
    { rank: 512, rope: 64 },
  ),
  states: recurrentModel(
    { ...SIZES, vocabulary: 220_000, layers: 12, width: 1024, heads: 0, headsKv: 0, headLength: 0, feedForward: 0 },
    { inner: 2048, state: 16, convolution: 4, rank: 64 },
  ),
};
/** Several threads wait for each other in a busy loop, which takes long where something else runs as well. */
const ONE_THREAD = ['--threads', '1'];
/** What is measured of a server beside its weights and its cache. Both sides count the same: what is not filled is switched off. */
interface Filling {
  /** Its cache of earlier prompts: only with a model that computes little for each token, since filling it would take hours with the others. */
  readonly prompts: boolean;
  /**
   * Copies of windows and states, of conversations that go on, one in each sequence. `close`: as many as the provider allows, which takes a few turns where copies may be close
   * to each other. `spaced`: with the distance that the provider sets, in a context that is too short for more copies of earlier turns than the first one.
   */
  readonly copies: 'none' | 'spaced' | 'close';
  /** Default: all. */
  readonly contexts?: readonly number[];
}
const EMPTY: Filling = { prompts: false, copies: 'none' };
const WITH_COPIES: readonly Filling[] = [
  EMPTY,
  { prompts: false, copies: 'spaced', contexts: [4096] },
  { prompts: false, copies: 'close' },
];
const FILLINGS: Readonly<Record<string, readonly Filling[]>> = {
  experts: [{ prompts: true, copies: 'none' }],
  windows: WITH_COPIES,
  states: WITH_COPIES,
};
const COPIES_ARGUMENTS = { none: ['--ctx-checkpoints', '0'], spaced: [], close: ['--checkpoint-min-step', '0'] } as const;
/** More than one batch. */
const SHORT_PROMPT_TOKENS = 600;
const COPIES_OF_TURN = 2;
const TURN_TOKENS = 8;
/** More than the window of a model that has one. */
const BEYOND_WINDOW_TOKENS = 64;
/** Names of models, separated by spaces. Default: all. */
const ONLY = process.env['SVC_BENCH_MODELS']?.split(' ');
/** Only what is measured with copies (`spaced` or `close`), or without (`none`). Default: all. */
const ONLY_COPIES = process.env['SVC_BENCH_COPIES']?.split(' ');

export async function measureMemory(): Promise<readonly Row[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-memory-'));
  try {
    await writeFile(path.join(directory, 'base.gguf'), encodeDemoModel('demo-fox'));
    const baseline = await measure(directory, { model: 'base', context: 512, filling: EMPTY });
    process.stdout.write(`  a server with a model of 0.3 MB takes ${mib(baseline.residentBytes)}\n`);
    const rows: Row[] = [];
    for (const [model, shape] of Object.entries(MODELS).filter(([name]) => ONLY?.includes(name) ?? true)) {
      const bytes = await writeLargeModel(path.join(directory, `${model}.gguf`), shape);
      for (const filling of (FILLINGS[model] ?? [EMPTY]).filter(({ copies }) => ONLY_COPIES?.includes(copies) ?? true)) {
        const name = `${model}${filling.copies === 'none' ? '' : ` with ${filling.copies} copies`}`;
        process.stdout.write(`  ${name}: ${mib(bytes)}\n`);
        const worst = await compare(directory, { model, filling, baseBytes: baseline.residentBytes });
        rows.push(atMost(`expected memory against what llama-server took, ${name}`, worst, { limit: GOAL_PERCENT, unit: '%', digits: 1 }));
      }
      await rm(path.join(directory, `${model}.gguf`));
    }
    return rows;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Prints a line for each context, and returns the largest difference in percent. */
async function compare(
  directory: string,
  { model, filling, baseBytes }: { readonly model: string; readonly filling: Filling; readonly baseBytes: number },
): Promise<number> {
  const differences: number[] = [];
  for (const context of CONTEXTS.filter((each) => filling.contexts?.includes(each) ?? true)) {
    const { residentBytes, expectedBytes } = await measure(directory, { model, context, filling });
    const [took, expected] = [residentBytes - baseBytes, expectedBytes - baseBytes];
    const percent = (100 * (expected - took)) / took;
    differences.push(Math.abs(percent));
    const line = [String(context).padStart(8), `took ${mib(took)}`, `expected ${mib(expected)}`, `${percent.toFixed(1)} %`];
    process.stdout.write(`  ${line.map((part) => part.padStart(18)).join('')}\n`);
  }
  return Math.max(...differences);
}

interface Measured {
  readonly residentBytes: number;
  readonly expectedBytes: number;
}

async function measure(
  directory: string,
  { model: name, context, filling }: { readonly model: string; readonly context: number; readonly filling: Filling },
): Promise<Measured> {
  const model = await readFacts(directory, `${name}.gguf`);
  const { prompts: withPrompts, copies } = filling;
  const extra = withPrompts ? [] : ['--cache-ram', '0', ...COPIES_ARGUMENTS[copies]];
  const spec = specOf(`${name}.gguf`, context, [...ONE_THREAD, ...extra]);
  const server = await startLlamaServer({ name: NAME, spec, model, directory });
  try {
    const { layout } = chooseLayout(NAME, spec, ggufModel(model));
    const length = withPrompts ? Math.min(PROMPT_TOKENS, Math.floor(context / 4)) : SHORT_PROMPT_TOKENS;
    // So many prompts that the cache of earlier ones is full.
    const tokenBytes = cacheBytes(ggufModel(model), layout) / layout.context;
    const prompts =
      copies !== 'none' ? 0 : 2 + (layout.cacheRamMiB === 0 ? 0 : Math.ceil((layout.cacheRamMiB * MIB) / tokenBytes / length));
    for (let index = 0; index < prompts; index += 1) await complete(server, randomTokens(length));
    if (copies !== 'none') await converse(server, layout, ggufModel(model).layers?.window?.tokens ?? 0);
    return { residentBytes: await server.residentBytes(), expectedBytes: gguf.estimateMemory(NAME, spec, model).hostBytes };
  } finally {
    await server.stop();
  }
}

async function readFacts(directory: string, file: string): Promise<Sized> {
  const read = await createModelReader(directory, [gguf.models]).read(ModelId.parse(file), file);
  if (read.kind !== 'present') throw new Error(`"${file}" cannot be read`);
  return read.facts;
}

function specOf(model: string, context: number, args: readonly string[]): SlotSpec {
  const parsed = parseSlot(NAME, { provider: 'gguf', backend: 'cpu', model: { default: model, context, args: [...args] } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

/** Each turn of a conversation makes two copies, which have what the window has by then. So a long prompt comes first in each sequence, and then as many short ones as it takes. */
async function converse(server: LlamaServer, { parallel, checkpoints, context }: ServerLayout, windowTokens: number): Promise<void> {
  const turns = Math.ceil(checkpoints / COPIES_OF_TURN) + 1;
  const room = Math.floor(context / parallel) - (turns + 1) * TURN_TOKENS;
  const prompts = Array.from({ length: parallel }, (): number[] => [...randomTokens(Math.min(windowTokens + BEYOND_WINDOW_TOKENS, room))]);
  for (let turn = 0; turn <= turns; turn += 1) {
    for (const [sequence, prompt] of prompts.entries()) {
      await complete(server, prompt, sequence);
      prompt.push(...randomTokens(TURN_TOKENS));
    }
  }
}

const randomTokens = (count: number): readonly number[] =>
  Array.from({ length: count }, () => FIRST_TOKEN + Math.floor(Math.random() * TOKENS));

/** In any sequence, or in this one. */
async function complete({ url }: LlamaServer, prompt: readonly number[], sequence?: number): Promise<void> {
  const body = JSON.stringify({ prompt, n_predict: 1, temperature: 0, ...(sequence === undefined ? {} : { id_slot: sequence }) });
  const answer = await fetch(`${url}/completion`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  const text = await answer.text();
  // The model for the baseline has fewer tokens, and refuses the others.
  if (!answer.ok && answer.status !== 400) throw new Error(`The server answered ${answer.status}: ${text.slice(0, 200)}`);
}

const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;
