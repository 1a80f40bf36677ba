/**
 * Compares what the provider expects a llama-server to need with what it takes. Generated models of at least 500 MB are served as the provider would start them, at contexts
 * from 4,096 to 131,072 tokens; then prompts are sent until its cache of prompts is full, and the memory of the process is read. Needs llama-server on the PATH, or
 * podman with the image that `toolboxes/gguf` describes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { encodeDemoModel } from '../src/models/demo/demo-models.ts';
import { createModelReader } from '../src/models/read-model.ts';
import type { ModelFacts } from '../src/providers/provider.ts';
import { ggufModel } from '../src/providers/gguf/decide/gguf-model.ts';
import { chooseLayout } from '../src/providers/gguf/decide/server-layout.ts';
import { serverParts, type ServerLayout } from '../src/providers/gguf/decide/server-memory.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import { ModelId, SlotName } from '../src/schema/names.ts';
import { parseSlot, type SlotSpec } from '../src/schema/slot-spec.ts';
import { startLlamaServer, type LlamaServer } from './llama-server.ts';
import { writeLargeModel, type LargeModel } from './large-model.ts';
import { denseModel, expertModel, latentModel, recurrentModel, windowModel } from './large-shapes.ts';
import { atMost, type Row } from './measure.ts';

const MIB = 2 ** 20;
const NAME = SlotName.parse('primary');
const CONTEXTS = [4096, 16_384, 32_768, 65_536, 131_072] as const;
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
  /** Copies of windows and states, as many as the provider allows: conversations that go on, one in each sequence. */
  readonly copies: boolean;
}
const EMPTY: Filling = { prompts: false, copies: false };
const FILLINGS: Readonly<Record<string, readonly Filling[]>> = {
  experts: [{ prompts: true, copies: false }],
  windows: [EMPTY, { prompts: false, copies: true }],
  states: [EMPTY, { prompts: false, copies: true }],
};
/** More than one batch. */
const SHORT_PROMPT_TOKENS = 600;
/** llama-server makes no copies that are closer to each other. */
const TURN_TOKENS = 300;
/** Names of models, separated by spaces. Default: all. */
const ONLY = process.env['SVC_BENCH_MODELS']?.split(' ');

export async function measureMemory(): Promise<readonly Row[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-memory-'));
  try {
    await writeFile(path.join(directory, 'base.gguf'), encodeDemoModel('demo-fox'));
    const baseline = await measure(directory, { model: 'base', context: 512, filling: EMPTY });
    process.stdout.write(`  a server with a model of 0.3 MB takes ${mib(baseline.residentBytes)}\n`);
    const rows: Row[] = [];
    for (const [model, shape] of Object.entries(MODELS).filter(([name]) => ONLY?.includes(name) ?? true)) {
      const bytes = await writeLargeModel(path.join(directory, `${model}.gguf`), shape);
      for (const filling of FILLINGS[model] ?? [EMPTY]) {
        const name = `${model}${filling.copies ? ' with copies' : ''}`;
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
  for (const context of CONTEXTS) {
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
  const off = [...(filling.prompts ? [] : ['--cache-ram', '0']), ...(filling.prompts || filling.copies ? [] : ['--ctx-checkpoints', '0'])];
  const spec = specOf(`${name}.gguf`, context, [...ONE_THREAD, ...off]);
  const server = await startLlamaServer({ name: NAME, spec, model, directory });
  try {
    const { layout } = chooseLayout(NAME, spec, ggufModel(model));
    const length = filling.prompts ? Math.min(PROMPT_TOKENS, Math.floor(context / 4)) : SHORT_PROMPT_TOKENS;
    // So many prompts that the cache of earlier ones is full.
    const tokenBytes = serverParts(ggufModel(model), layout).cache / layout.context;
    const prompts = 2 + (layout.cacheRamMiB === 0 ? 0 : Math.ceil((layout.cacheRamMiB * MIB) / tokenBytes / length));
    for (let index = 0; index < prompts; index += 1) await complete(server, randomTokens(length));
    if (filling.copies) await converse(server, layout);
    return { residentBytes: await server.residentBytes(), expectedBytes: gguf.estimateMemory(NAME, spec, model).hostBytes };
  } finally {
    await server.stop();
  }
}

async function readFacts(directory: string, file: string): Promise<ModelFacts> {
  const read = await createModelReader(directory, [gguf.models]).read(ModelId.parse(file), file);
  if (read.kind !== 'present') throw new Error(`"${file}" cannot be read`);
  return read.facts;
}

function specOf(model: string, context: number, args: readonly string[]): SlotSpec {
  const parsed = parseSlot(NAME, { provider: 'gguf', backend: 'cpu', model: { default: model, context, args: [...args] } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

/** As many turns in each sequence as there may be copies of it, and two more. */
async function converse(server: LlamaServer, { parallel, checkpoints, context }: ServerLayout): Promise<void> {
  const turns = Math.min(checkpoints + 2, Math.floor(context / parallel / TURN_TOKENS) - 1);
  const prompts = Array.from({ length: parallel }, (): number[] => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [sequence, prompt] of prompts.entries()) {
      prompt.push(...randomTokens(TURN_TOKENS));
      await complete(server, prompt, sequence);
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
