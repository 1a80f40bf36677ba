/** Downloads of a large file with its hash, compared with `curl` from the same server, the header of a file of 40 GB, and whether a model fits. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { measureFit } from './fit.ts';
import { readLargeHeader } from './large-header.ts';
import { atLeast, atMost, median, type Row } from './measure.ts';

const run = promisify(execFile);
const MIB = 2 ** 20;
const ROUNDS = 3;
const CAP_BYTES_PER_SECOND = 100_000_000;
const CAPPED_MIB = 500;
const UNCAPPED_MIB = 1000;
/** How much of the file a download has when it is killed. */
const KILLED_AT = 0.9;

interface Pulled {
  readonly pullMs: number;
  readonly curlMs: number;
  readonly memoryBytes: number;
}

interface Resumed {
  readonly resumedMs: number;
  /** Of `sha256sum` for the whole file, and of `curl` for what was missing. */
  readonly neededMs: number;
}

export async function measureModels(): Promise<readonly Row[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-models-'));
  try {
    const capped = await comparePulls(directory, CAPPED_MIB, CAP_BYTES_PER_SECOND);
    const header = await readLargeHeader(directory);
    const uncapped = await comparePulls(directory, UNCAPPED_MIB, 0);
    const resumed = await compareResumed(directory);
    const fit = await measureFit(directory);
    return [
      atLeast('download with hash against curl, server capped at 100 MB/s', capped.curlMs / capped.pullMs, { limit: 0.9, unit: '×' }),
      atMost('memory of that download', capped.memoryBytes / 1e6, { limit: 60, unit: 'MB', digits: 0 }),
      atLeast('download with hash against curl, server not capped', uncapped.curlMs / uncapped.pullMs, { limit: 0.5, unit: '×' }),
      atMost('header of a file of 40 GB', header.ms, { limit: 50, unit: 'ms', digits: 1 }),
      atMost('memory of reading it', header.memoryBytes / MIB, { limit: 32, unit: 'MiB', digits: 1 }),
      atLeast('a download resumed at 90 %, against sha256sum and curl of the rest', resumed.neededMs / resumed.resumedMs, {
        limit: 0.9,
        unit: '×',
      }),
      atMost('whether a model fits: answer of the service', fit.answerMs, { limit: 100, unit: 'ms', digits: 1 }),
      atMost('the same with svcctl fit, from the start of its process to its end', fit.commandMs, { limit: 100, unit: 'ms', digits: 0 }),
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function comparePulls(directory: string, mib: number, bytesPerSecond: number): Promise<Pulled> {
  const server = await startModelServer(mib, bytesPerSecond);
  try {
    const target = path.join(directory, 'm');
    const rounds: Pulled[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const curlMs = await timeOf('curl', ['--silent', '--fail', '--output', target, server.url]);
      await rm(target);
      const { stdout } = await run(process.execPath, server.pull(target));
      const [pullMs = Number.NaN, memoryBytes = Number.NaN] = stdout.trim().split(' ').map(Number);
      await rm(target);
      rounds.push({ pullMs, curlMs, memoryBytes });
    }
    const of = (key: keyof Pulled): number => median(rounds.map((each) => each[key]));
    const pulled = { pullMs: of('pullMs'), curlMs: of('curlMs'), memoryBytes: of('memoryBytes') };
    process.stdout.write(`  ${mib} MiB: ${pulled.pullMs.toFixed(0)} ms, curl ${pulled.curlMs.toFixed(0)} ms, medians of ${ROUNDS}\n`);
    return pulled;
  } finally {
    server.stop();
  }
}

/** A download that was killed is finished by another process, which must hash what is there, since the state of a hash cannot be stored. */
async function compareResumed(directory: string): Promise<Resumed> {
  const server = await startModelServer(UNCAPPED_MIB, 0);
  try {
    const target = path.join(directory, 'm');
    const rounds: Resumed[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const curlMs = await timeOf('curl', ['--silent', '--fail', '--output', target, server.url]);
      const hashMs = await timeOf('sha256sum', [target]);
      await rm(target);
      await run(process.execPath, [...server.pull(target), String(KILLED_AT * UNCAPPED_MIB * MIB)]).catch(() => undefined);
      const { stdout } = await run(process.execPath, server.pull(target));
      const [resumedMs = Number.NaN] = stdout.trim().split(' ').map(Number);
      await rm(target);
      rounds.push({ resumedMs, neededMs: hashMs + (1 - KILLED_AT) * curlMs });
    }
    const of = (key: keyof Resumed): number => median(rounds.map((each) => each[key]));
    return { resumedMs: of('resumedMs'), neededMs: of('neededMs') };
  } finally {
    server.stop();
  }
}

async function startModelServer(mib: number, bytesPerSecond: number) {
  const server = spawn(process.execPath, ['bench/model-server-process.ts', String(mib), String(bytesPerSecond)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port = '', sha256 = ''] = (await firstLine(server.stdout)).split(' ');
  const url = `http://127.0.0.1:${port}/m`;
  return {
    url,
    /** Arguments of a process that downloads the file. */
    pull: (target: string) => ['bench/model-pull-process.ts', url, sha256, String(mib * MIB), target],
    stop: () => void server.kill(),
  };
}

async function timeOf(program: string, args: readonly string[]): Promise<number> {
  const began = performance.now();
  await run(program, args);
  return performance.now() - began;
}

async function firstLine(stream: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.includes('\n')) return text.trim();
  }
  throw new Error('The server did not start');
}
