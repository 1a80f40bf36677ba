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
import { createModelReader } from '../src/models/read-model.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import { ModelId, SlotName } from '../src/schema/words/names.ts';
import { parseSlot } from '../src/schema/slot/slot-spec.ts';
import { startLlamaServer, type LlamaServer } from './llama-server.ts';
import { writeLargeModel } from './large-model.ts';
import { denseModel } from './large-shapes.ts';
import { atMost, median, note, type Row } from './measure.ts';

const ROUNDS = Number(process.env['SVC_BENCH_ROUNDS'] ?? 3);
const MOVE_MS = 60_000;
const NAME = SlotName.parse('primary');
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

interface Round {
  readonly firstTokenMs: number;
  readonly computed: number;
  readonly text: string;
}

export async function measureSwap(): Promise<readonly Row[]> {
  if ((await findProgram(gguf.program, process.env['PATH'])) === undefined)
    return [atMost(TITLE, 'needs llama-server', { limit: 0.1, unit: '×' })];
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-swap-'));
  try {
    const bytes = await writeLargeModel(path.join(directory, 'large.gguf'), MODEL);
    const rounds: Record<'restored' | 'computed', Round[]> = { restored: [], computed: [] };
    const moves: Record<'save' | 'restore', number[]> = { save: [], restore: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = await start(directory);
      await ask(first);
      moves.save.push(await move(first, 'save'));
      await first.stop();
      for (const which of ['restored', 'computed'] as const) {
        const next = await start(directory);
        if (which === 'restored') moves.restore.push(await move(next, 'restore'));
        rounds[which].push(await ask(next));
        await next.stop();
      }
    }
    const of = (which: keyof typeof rounds, what: 'firstTokenMs' | 'computed'): number => median(rounds[which].map((each) => each[what]));
    const texts = new Set([...rounds.restored, ...rounds.computed].map(({ text }) => text));
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

async function start(directory: string): Promise<LlamaServer> {
  const args = ['--slot-save-path', directory, '--ctx-size', '8192', '--parallel', '1'];
  const parsed = parseSlot(NAME, { provider: 'gguf', backend: 'cpu', model: { default: 'large.gguf', args } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const read = await createModelReader(directory, [gguf.models]).read(ModelId.parse('large.gguf'), 'large.gguf');
  if (read.kind !== 'present') throw new Error(JSON.stringify(read));
  return startLlamaServer({ name: NAME, spec: parsed.spec, model: read.facts, directory });
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

async function ask({ url }: LlamaServer): Promise<Round> {
  const from = performance.now();
  const answer = await fetch(`${url}/completion`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: PROMPT, n_predict: 4, temperature: 0, stream: true, return_tokens: true }),
  });
  let text = '';
  let firstTokenMs: number | undefined;
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    firstTokenMs ??= performance.now() - from;
  }
  const computed = /"prompt_n":(\d+)/.exec(text)?.[1];
  if (firstTokenMs === undefined || computed === undefined) throw new Error(`An unexpected answer: ${text.slice(0, 500)}`);
  const tokens = [...text.matchAll(/"tokens":\[([\d,]*)\]/g)].map(([, list]) => list).join(' ');
  return { firstTokenMs, computed: Number(computed), text: tokens };
}
