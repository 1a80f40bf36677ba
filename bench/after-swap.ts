/**
 * What the first request after an unload waits for, and what llama-server gives back of a prompt that it has computed once: with the real llama-server, started as the provider
 * would, and generated models of four kinds. Needs llama-server on the PATH. Prompts are tokens; answers have four, at temperature 0.
 */
import { copyFile, mkdtemp, open, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findProgram } from '../src/providers/host-program.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import type { LlamaServer } from './llama-server.ts';
import { writeLargeModel } from './large-model.ts';
import { denseModel } from './large-shapes.ts';
import { note, type Outcome } from './measure.ts';
import {
  count,
  fileOf,
  KINDS,
  mediansOf,
  megabytes,
  milliseconds,
  ROUNDS,
  SMALL,
  STARTED,
  tokensFrom,
  withServer,
  type Wanted,
} from './swap-kinds.ts';
import { measureLoads } from './swap-loads.ts';
import { ask, move, type Answer } from './swap-server.ts';
import type { ResultGrid } from './decide/result.ts';

/** Tables to measure, separated by spaces. Default: all. */
const ONLY = process.env['SVC_BENCH_TABLES']?.split(' ');
const LENGTHS = [1000, 4000, 16_000];
/** Prompts of this length get one round, because each takes so long. */
const LONG = 16_000;
/** Tokens of the prompt whose recomputation is compared. */
const SHORT = 1000;

const PROMPT_FILE = 'conversation.prompt';

export async function measureAfterSwap(): Promise<Outcome> {
  if ((await findProgram(gguf.program, process.env['PATH'])) === undefined)
    return { rows: [note('the first request after an unload', 'needs llama-server on the PATH')], tables: [] };
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-after-swap-'));
  try {
    const sizes = new Map<string, number>();
    for (const [kind, model] of [...Object.entries(KINDS), ...Object.entries(STARTED)])
      sizes.set(kind, await writeLargeModel(path.join(directory, fileOf(kind)), model));
    const tables = { loads: async () => await measureLoads(directory, sizes), prompts, reuse, files: foreignFiles };
    const grids: ResultGrid[] = [];
    for (const [name, measure] of Object.entries(tables)) if (ONLY?.includes(name) ?? true) grids.push(await measure(directory));
    return { rows: [], tables: [], grids };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Prompts of several lengths, computed and restored by a server that has just started. */
async function prompts(directory: string): Promise<ResultGrid> {
  const rows: string[][] = [];
  for (const kind of Object.keys(KINDS))
    for (const length of LENGTHS) {
      const rounds: number[][] = [];
      for (let round = 0; round < (length === LONG ? 1 : ROUNDS); round += 1) rounds.push(await moveOne(directory, kind, length));
      const [bytes = 0, save, restore, first, again, computed = 0] = mediansOf(rounds);
      rows.push([
        kind,
        count(length),
        milliseconds(first),
        megabytes(bytes),
        milliseconds(save),
        milliseconds(restore),
        milliseconds(again),
        count(computed),
      ]);
      process.stdout.write(`  ${rows.at(-1)?.join(' | ')}\n`);
    }
  return {
    title: 'The next turn of a conversation on a server that has just started, with its prompt restored',
    header: ['Attention', 'Tokens', 'First token, computed', 'File', 'Save', 'Restore', 'First token, restored', 'Tokens computed'],
    rows,
  };
}

async function moveOne(directory: string, kind: string, length: number): Promise<number[]> {
  const prompt = tokensFrom(0, length);
  const { first, saved, bytes } = await withServer(directory, { kind }, async (server) => {
    const answer = await ask(server, prompt);
    const result = await move(server, 'save', PROMPT_FILE);
    return { first: answer, saved: result, bytes: (await stat(path.join(directory, PROMPT_FILE))).size };
  });
  return await withServer(directory, { kind }, async (server) => {
    const restored = await move(server, 'restore', PROMPT_FILE);
    const again = await ask(server, [...prompt, ...first.tokens, ...tokensFrom(1000, 50)]);
    return [bytes, saved.ms, restored.ms, first.firstTokenMs, again.firstTokenMs, again.computed];
  });
}

type Turn = (first: Answer) => readonly number[];
const PROMPT = tokensFrom(0, SHORT);
const NEXT_TURN: Turn = ({ tokens }) => [...PROMPT, ...tokens, ...tokensFrom(1000, 50)];
const SAME: Turn = () => PROMPT;
/** The last message of the user in other words: what was computed goes on for some tokens. */
const REWORDED: Turn = () => [...PROMPT.slice(0, SHORT - 100), ...tokensFrom(2000, 100)];
const EDITED: Turn = () => [...PROMPT.slice(0, SHORT / 2), ...tokensFrom(2000, SHORT / 2)];

interface Scenario {
  readonly name: string;
  readonly args?: readonly string[];
  readonly turn: Turn;
  /** What happens in between. */
  readonly between: 'nothing' | 'another conversation' | 'restart' | 'restart and probe';
}

const NO_CACHE = ['--cache-ram', '0'];
const NO_COPIES = ['--ctx-checkpoints', '0'];
const SCENARIOS: readonly Scenario[] = [
  { name: 'same server: next turn', turn: NEXT_TURN, between: 'nothing' },
  { name: 'same server: same prompt again', turn: SAME, between: 'nothing' },
  { name: 'same server: last 100 tokens differ', turn: REWORDED, between: 'nothing' },
  { name: 'the same without context checkpoints', args: NO_COPIES, turn: REWORDED, between: 'nothing' },
  { name: 'same server: second half differs', turn: EDITED, between: 'nothing' },
  { name: 'another conversation between: next turn', turn: NEXT_TURN, between: 'another conversation' },
  { name: 'the same with `--cache-ram 0`', args: NO_CACHE, turn: NEXT_TURN, between: 'another conversation' },
  {
    name: 'the same with `--cache-ram 0`, two places of a unified cache',
    args: [...NO_CACHE, '--parallel', '2', '--kv-unified'],
    turn: NEXT_TURN,
    between: 'another conversation',
  },
  { name: 'restart, restored: next turn', turn: NEXT_TURN, between: 'restart' },
  { name: 'the same without context checkpoints', args: NO_COPIES, turn: NEXT_TURN, between: 'restart' },
  { name: 'restart, restored, then a probe: next turn', turn: NEXT_TURN, between: 'restart and probe' },
  { name: 'restart, restored: same prompt again', turn: SAME, between: 'restart' },
  { name: 'restart, restored: last 100 tokens differ', turn: REWORDED, between: 'restart' },
  { name: 'the same without context checkpoints', args: NO_COPIES, turn: REWORDED, between: 'restart' },
  { name: 'restart, restored: second half differs', turn: EDITED, between: 'restart' },
];

/** How many tokens are computed for the second request. */
async function reuse(directory: string): Promise<ResultGrid> {
  const rows: string[][] = [];
  for (const scenario of SCENARIOS) {
    const cells: string[] = [];
    for (const kind of Object.keys(KINDS))
      cells.push(await again(directory, kind, scenario).catch((error: unknown) => String(error).slice(0, 80)));
    rows.push([scenario.name, ...cells]);
    process.stdout.write(`  ${rows.at(-1)?.join(' | ')}\n`);
  }
  return {
    title: `Tokens computed for the second request, after one of ${count(SHORT)} tokens`,
    header: ['What comes after the first request', ...Object.keys(KINDS)],
    rows,
  };
}

async function again(directory: string, kind: string, { args = [], turn, between }: Scenario): Promise<string> {
  const restarts = between.startsWith('restart');
  const wanted = { kind, args };
  const second = async (server: LlamaServer, first: Answer): Promise<string> => {
    const prompt = turn(first);
    const { computed } = await ask(server, prompt);
    return `${count(computed)} of ${count(prompt.length)}`;
  };
  const first = await withServer(directory, wanted, async (server) => {
    const answer = await ask(server, PROMPT);
    if (between === 'another conversation') await ask(server, tokensFrom(3000, SHORT));
    if (restarts) await move(server, 'save', PROMPT_FILE);
    return restarts ? answer : await second(server, answer);
  });
  if (typeof first === 'string') return first;
  return await withServer(directory, wanted, async (server) => {
    await move(server, 'restore', PROMPT_FILE);
    if (between === 'restart and probe') await ask(server, tokensFrom(3000, 3), 1);
    return await second(server, first);
  });
}

/** What the server says to files that are not its own. */
async function foreignFiles(directory: string): Promise<ResultGrid> {
  const kind = 'full attention';
  const own = await withServer(directory, { kind }, async (server) => {
    const answer = await ask(server, PROMPT);
    await move(server, 'save', PROMPT_FILE);
    return answer;
  });
  await copyFile(path.join(directory, PROMPT_FILE), path.join(directory, 'cut.prompt'));
  await truncate(path.join(directory, 'cut.prompt'), 5000);
  await copyFile(path.join(directory, PROMPT_FILE), path.join(directory, 'version.prompt'));
  await overwrite(path.join(directory, 'version.prompt'), 4, 99);
  await writeLargeModel(path.join(directory, fileOf('same shape')), denseModel(SMALL));
  const tries: readonly (readonly [string, Wanted, string?])[] = [
    ['its own', { kind }],
    ['other weights of the same shape', { kind: 'same shape' }],
    ['another shape', { kind: 'large' }],
    ['another kind of attention', { kind: 'sliding windows' }],
    ['a smaller context, too short for the next turn', { kind, args: ['--ctx-size', '1024'] }],
    ['a larger context', { kind, args: ['--ctx-size', '32768'] }],
    ['another type of the cache', { kind, args: ['--cache-type-k', 'q8_0', '--cache-type-v', 'q8_0'] }],
    ['two places', { kind, args: ['--parallel', '2'] }],
    ['another version in its header', { kind }, 'version.prompt'],
    ['cut off', { kind }, 'cut.prompt'],
    ['missing', { kind }, 'missing.prompt'],
  ];
  const rows: string[][] = [];
  for (const [name, wanted, file = PROMPT_FILE] of tries)
    rows.push(
      await withServer(directory, wanted, async (server) => {
        const { status, body } = await move(server, 'restore', file);
        const next = await ask(server, NEXT_TURN(own)).catch((error: unknown) => String(error));
        const after = typeof next === 'string' ? 'refused' : `${count(next.computed)} of ${count(NEXT_TURN(own).length)}`;
        return [name, String(status), /"message":"([^"]*)"/.exec(body)?.[1] ?? 'restored', after];
      }),
    );
  return {
    title: `Files of another server, of ${count(SHORT)} tokens`,
    header: ['The file is', 'Status', 'Answer', 'Tokens computed for the next turn'],
    rows,
  };
}

async function overwrite(file: string, offset: number, value: number): Promise<void> {
  await using handle = await open(file, 'r+');
  await handle.write(Buffer.from([value]), 0, 1, offset);
}
