/** What a start of llama-server consists of: its log says when each part ends. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ResultGrid } from './decide/result.ts';
import { fileOf, gigabytes, mediansOf, milliseconds, ROUNDS, STARTED, tokensFrom, withServer, type Wanted } from './swap-kinds.ts';
import { ask, dropPages } from './swap-server.ts';

const run = promisify(execFile);

/** Where each part of a load ends, in the order of the log at this verbosity. The model is read twice: `--fit` asks how much memory it needs. */
const PARTS = [
  /loading model '/,
  /fitting params to .*took/,
  /load_mode = mmap/,
  /constructing llama_context/,
  /warming up/,
  /n_slots = /,
] as const;
const VERBOSE = ['--log-verbosity', '4'];
const FIT_OFF = ['--fit', 'off'];

/** The parts of a load, from the spawn to the first answer. */
export async function measureLoads(directory: string, sizes: ReadonlyMap<string, number>): Promise<ResultGrid> {
  const rows: string[][] = [];
  for (const kind of Object.keys(STARTED))
    for (const [cache, args] of [
      ['cold', []],
      ['warm', []],
      ['warm', FIT_OFF],
    ] as const) {
      const rounds: number[][] = [];
      for (let round = 0; round < ROUNDS; round += 1) rounds.push(await load(directory, { kind, args: [...VERBOSE, ...args] }, cache));
      const name = `${gigabytes(sizes.get(kind))}${args.length === 0 ? '' : ', `--fit off`'}`;
      rows.push([name, cache, ...mediansOf(rounds).map(milliseconds)]);
      process.stdout.write(`  ${rows.at(-1)?.join(' | ')}\n`);
    }
  return {
    title: 'From the start of the server to the first token of a prompt of 1,000 tokens',
    header: ['Model', 'Page cache', 'Process', '`--fit`', 'Header, vocabulary', 'Map weights', 'Cache, graph', 'Warm-up', 'Prompt', 'Sum'],
    rows,
  };
}

async function load(directory: string, wanted: Wanted, cache: 'cold' | 'warm'): Promise<number[]> {
  const file = path.join(directory, fileOf(wanted.kind));
  if (cache === 'cold') await dropPages(file);
  else await run('dd', [`if=${file}`, 'of=/dev/null', 'bs=4M', 'status=none']);
  const from = performance.now();
  const ends: number[] = [];
  const onLine = (line: string): void => {
    const part = PARTS.findLastIndex((each) => each.test(line));
    // The first context is that of `--fit`, which is over then.
    if (part >= 0 && (part < 2 || ends[2] !== undefined || part === 2)) ends[part] = performance.now() - from;
  };
  return await withServer(directory, { ...wanted, onLine }, async (server) => {
    const { firstTokenMs } = await ask(server, tokensFrom(0, 1000));
    let before = 0;
    const parts = PARTS.map((_, index) => {
      const [begin, end = begin] = [before, ends[index]];
      before = end;
      return end - begin;
    });
    return [...parts, firstTokenMs, before + firstTokenMs];
  });
}
