/**
 * What a long conversation costs on a server that has just started: the real llama-server, started as the provider would, with a generated model and a prompt of about 4,000
 * tokens. Its prompts are saved before it ends, and the next server gets them back, or computes them again; both take turns. Needs llama-server on the PATH, as the files must
 * be readable from here.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createProbeIo } from '../src/platform/probe-io.ts';
import { findProgram } from '../src/providers/host-program.ts';
import { promptCache } from '../src/providers/gguf/prompt-cache.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import type { LlamaServer } from './llama-server.ts';
import { ask, startForSwap, type Answer } from './swap-server.ts';
import { writeLargeModel } from './large-model.ts';
import { denseModel } from './large-shapes.ts';
import { atMost, median, note, type Row } from './measure.ts';

const ROUNDS = Number(process.env['SVC_BENCH_ROUNDS'] ?? 3);
const MOVE_MS = 60_000;
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
const FIRST_TOKEN = 300;
const PROMPT = Array.from({ length: 4000 }, (_, index) => FIRST_TOKEN + (index % 3500));
const TITLE = 'first token of 4,000, prompts restored against computed again';

export async function measureSwap(): Promise<readonly Row[]> {
  if ((await findProgram(gguf.program, process.env['PATH'])) === undefined)
    return [atMost(TITLE, 'needs llama-server', { limit: 0.1, unit: '×' })];
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-swap-'));
  try {
    const bytes = await writeLargeModel(path.join(directory, 'large.gguf'), MODEL);
    const rounds: Record<'restored' | 'computed', Answer[]> = { restored: [], computed: [] };
    const moves: Record<'save' | 'restore', number[]> = { save: [], restore: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = await start(directory);
      await ask(first, PROMPT);
      moves.save.push(await move(first, 'save'));
      await first.stop();
      for (const which of ['restored', 'computed'] as const) {
        const next = await start(directory);
        if (which === 'restored') moves.restore.push(await move(next, 'restore'));
        rounds[which].push(await ask(next, PROMPT));
        await next.stop();
      }
    }
    const of = (which: keyof typeof rounds, what: 'firstTokenMs' | 'computed'): number => median(rounds[which].map((each) => each[what]));
    const texts = new Set([...rounds.restored, ...rounds.computed].map(({ tokens }) => tokens.join()));
    return [
      atMost(TITLE, of('restored', 'firstTokenMs') / of('computed', 'firstTokenMs'), { limit: 0.1, unit: '×' }),
      atMost('first token of 4,000, prompts restored', of('restored', 'firstTokenMs'), { limit: 300, unit: 'ms', digits: 0 }),
      atMost('tokens computed, prompts restored', of('restored', 'computed'), { limit: 1, unit: 'tokens', digits: 0 }),
      atMost('different answers at temperature 0', texts.size, { limit: 1, unit: 'answers', digits: 0 }),
      note('first token of 4,000, computed again', `${of('computed', 'firstTokenMs').toFixed(0)} ms`),
      note('time to save, and to restore', `${median(moves.save).toFixed(0)} ms, ${median(moves.restore).toFixed(0)} ms`),
      note('size of the model', `${Math.round(bytes / 1e6)} MB`),
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const start = async (directory: string): Promise<LlamaServer> =>
  await startForSwap({ directory, file: 'large.gguf', args: ['--ctx-size', '8192'] });

/** Returns how long it took, in milliseconds. */
async function move({ url }: LlamaServer, direction: 'save' | 'restore'): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const from = performance.now();
  const what = { direction, place: 0, file: 'conversation.prompt', timeoutMs: MOVE_MS };
  const moved = await promptCache.move({ host, port: Number(port) }, createProbeIo(), what, AbortSignal.timeout(MOVE_MS));
  if (!moved.ok) throw new Error(`Not ${direction}d: ${moved.problem}`);
  return performance.now() - from;
}
