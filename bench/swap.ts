/**
 * A swap to another model and back: the real llama-server, started as the provider would, with a generated model and a conversation of about 4,000 tokens. Prompts are kept or
 * computed again, and the model's file is read ahead or comes from the disk; without both, it is what a program does that stops one command and starts the other, as llama-swap.
 * Needs llama-server on the PATH, as the files must be readable from here. Last, what the start of a server costs the requests of another slot.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createProbeIo } from '../src/platform/probe-io.ts';
import { findProgram } from '../src/providers/host-program.ts';
import { promptCache } from '../src/providers/gguf/prompt-cache.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import type { LlamaServer } from './llama-server.ts';
import { ask, dropPages, readAhead, startForSwap, type Answer } from './swap-server.ts';
import { measureStarts } from './swap-starts.ts';
import { writeLargeModel } from './large-model.ts';
import { denseModel } from './large-shapes.ts';
import { atMost, median, note, type Row } from './measure.ts';

const ROUNDS = Number(process.env['SVC_BENCH_ROUNDS'] ?? 3);
const MOVE_MS = 60_000;
const FILE = 'large.gguf';
const MODEL = denseModel({
  layers: 8,
  width: 1024,
  heads: 16,
  headsKv: 4,
  headLength: 64,
  feedForward: 4096,
  vocabulary: 120_000,
  context: 16_384,
  format: 'q8_0',
});
/** The model that is served meanwhile. */
const OTHER_FILE = 'other.gguf';
const OTHER = denseModel({
  layers: 2,
  width: 256,
  heads: 4,
  headsKv: 4,
  headLength: 64,
  feedForward: 512,
  vocabulary: 2000,
  context: 4096,
  format: 'q8_0',
});
const FIRST_TOKEN = 300;
const PROMPT = Array.from({ length: 4000 }, (_, index) => FIRST_TOKEN + (index % 3500));
const TITLE = 'first token of 4,000, prompts restored against computed again';

const WAYS = {
  script: { file: 'cold', prompts: 'computed' },
  ahead: { file: 'read ahead', prompts: 'computed' },
  kept: { file: 'cold', prompts: 'restored' },
  both: { file: 'read ahead', prompts: 'restored' },
} as const;
type Way = (typeof WAYS)[keyof typeof WAYS];

interface Swap {
  /** Until the server is healthy, from the stop of the other one on. */
  readonly loadMs: number;
  /** Until the first token of the answer: the load, restored prompts, and the prompt. */
  readonly sumMs: number;
  readonly readMs: number | undefined;
  readonly moveMs: number;
  readonly answer: Answer;
}

export async function measureSwap(): Promise<readonly Row[]> {
  return [...(await measureSwapBack()), ...(await measureStarts())];
}

async function measureSwapBack(): Promise<readonly Row[]> {
  if ((await findProgram(gguf.program, process.env['PATH'])) === undefined)
    return [atMost(TITLE, 'needs llama-server', { limit: 0.1, unit: '×' })];
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-swap-'));
  try {
    const bytes = await writeLargeModel(path.join(directory, FILE), MODEL);
    await writeLargeModel(path.join(directory, OTHER_FILE), OTHER);
    const rounds: Record<keyof typeof WAYS, Swap[]> = { script: [], ahead: [], kept: [], both: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      // In this order, because what is computed first is saved for the others.
      for (const way of ['script', 'ahead', 'kept', 'both'] as const) rounds[way].push(await swapBack(directory, WAYS[way]));
    }
    return rowsOf(rounds, bytes);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function rowsOf(rounds: Readonly<Record<keyof typeof WAYS, readonly Swap[]>>, bytes: number): readonly Row[] {
  const restored = [...rounds.kept, ...rounds.both];
  const computed = [...rounds.script, ...rounds.ahead];
  const of = (swaps: readonly Swap[], what: (swap: Swap) => number): number => median(swaps.map(what));
  const firstToken = ({ answer }: Swap): number => answer.firstTokenMs;
  const sum = ({ sumMs }: Swap): number => sumMs;
  const load = ({ loadMs }: Swap): number => loadMs;
  const inRounds = (way: keyof typeof WAYS, what: (swap: Swap) => number): number =>
    median(rounds[way].map((each, index) => what(each) / what(rounds.script[index] ?? each)));
  const loads = rounds.script.flatMap((each, index) =>
    [rounds.ahead[index], rounds.both[index]].map((ahead = each) => load(ahead) / load(each)),
  );
  const texts = new Set([...restored, ...computed].map(({ answer }) => answer.tokens.join()));
  return [
    atMost(TITLE, of(restored, firstToken) / of(computed, firstToken), { limit: 0.1, unit: '×' }),
    atMost('first token of 4,000, prompts restored', of(restored, firstToken), { limit: 300, unit: 'ms', digits: 0 }),
    atMost(
      'tokens computed, prompts restored',
      of(restored, ({ answer }) => answer.computed),
      { limit: 1, unit: 'tokens', digits: 0 },
    ),
    atMost('different answers at temperature 0', texts.size, { limit: 1, unit: 'answers', digits: 0 }),
    note('first token of 4,000, computed again', milliseconds(of(computed, firstToken))),
    atMost('swap back, against stop and start of the commands by a script', inRounds('both', sum), { limit: 0.5, unit: '×' }),
    note('the same with kept prompts and a cold file', `${inRounds('kept', sum).toFixed(2)} ×`),
    note('the same with the file read ahead, without kept prompts', `${inRounds('ahead', sum).toFixed(2)} ×`),
    note('swap back with both, until the first token', milliseconds(of(rounds.both, sum))),
    note('swap back by the script: cold file, no kept prompts', milliseconds(of(rounds.script, sum))),
    atMost('stop and load of a swap, file read ahead against a cold one', median(loads), { limit: 1, unit: '×' }),
    note(
      'stop and load, cold, and read ahead',
      [
        [...rounds.script, ...rounds.kept],
        [...rounds.ahead, ...rounds.both],
      ]
        .map((each) => milliseconds(of(each, load)))
        .join(', '),
    ),
    note('time to read ahead', milliseconds(of([...rounds.ahead, ...rounds.both], ({ readMs = Number.NaN }) => readMs))),
    note('time to save, and to restore', [computed, restored].map((each) => milliseconds(of(each, ({ moveMs }) => moveMs))).join(', ')),
    note('size of the model', `${Math.round(bytes / 1e6)} MB`),
  ];
}

/** Returns how long each part took of a swap from the other model to the one of the conversation. */
async function swapBack(directory: string, { file, prompts }: Way): Promise<Swap> {
  const other = await startForSwap({ directory, file: OTHER_FILE });
  await ask(other, PROMPT.slice(0, 10));
  await dropPages(path.join(directory, FILE));
  // The other server answers its last requests meanwhile.
  const readMs = file === 'cold' ? undefined : await readAhead(directory, FILE);
  const from = performance.now();
  await other.stop('SIGTERM');
  const server = await startForSwap({ directory, file: FILE, args: ['--ctx-size', '8192'] });
  try {
    const loadMs = performance.now() - from;
    const restoreMs = prompts === 'restored' ? await move(server, 'restore') : undefined;
    const askedAt = performance.now();
    const answer = await ask(server, PROMPT);
    const sumMs = askedAt - from + answer.firstTokenMs;
    return { loadMs, sumMs, readMs, moveMs: restoreMs ?? (await move(server, 'save')), answer };
  } finally {
    await server.stop();
  }
}

/** Returns how long it took, in milliseconds. */
async function move({ url }: LlamaServer, direction: 'save' | 'restore'): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const from = performance.now();
  const what = { direction, place: 0, file: 'conversation.prompt', timeoutMs: MOVE_MS };
  const moved = await promptCache.move({ host, port: Number(port) }, createProbeIo(), what, AbortSignal.timeout(MOVE_MS));
  if (!moved.ok) throw new Error(`Not ${direction}d: ${moved.problem}`);
  return performance.now() - from;
}

const milliseconds = (value: number): string => `${value.toFixed(0)} ms`;
