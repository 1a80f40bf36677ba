/**
 * The CPU time of a request with and without authentication, of gateways in one process (`auth-process.ts`). The clients of one after the other are let run for a moment, and ratios are those of
 * neighbours in time: the speed of a shared machine changes from second to second.
 */
import { execFile, fork, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenFile } from './auth-tokens.ts';
import { orderOfRound } from './decide/order-of-round.ts';
import { parseWrk } from './decide/parse-wrk.ts';
import { writeScript } from './load.ts';
import { atMost, median, type Row } from './measure.ts';
import { startNativeUpstream, type Bed } from './proxies.ts';

const ROUNDS = 200;
/** The code is compiled meanwhile. */
const FIRST_ROUNDS = 30;
const CONNECTIONS = 32;
/** Until the clients are at work, and how long they are measured. */
const BEGIN_MS = 20;
const SLICE_MS = 120;
const STOP_MS = 50;
/** Longer than everything. */
const LOAD_SECONDS = 3600;
const NAMES = ['off', 'on', 'many', 'counted', 'limited', 'recorded'] as const;
/** None of them is reached. */
export const COUNTED = { requests_per_minute: 1_000_000, tokens_per_minute: 1e9, tokens_per_day: 1e12, max_in_flight: 10_000 };
export const ALL_LIMITS = { ...COUNTED, models: ['primary'], max_output_tokens: 1000 };
type Name = (typeof NAMES)[number];

export async function measureCpu(bed: Bed, many: number): Promise<readonly Row[]> {
  const upstream = await startNativeUpstream(bed);
  const files = [
    await createTokenFile({ known: 1, total: 1 }),
    await createTokenFile({ known: 1, total: many }),
    await createTokenFile({ known: 1, total: 1, limits: COUNTED }),
    await createTokenFile({ known: 1, total: 1, limits: ALL_LIMITS }),
  ];
  const paths = files.map((_file, index) => join(bed.directory, `tokens-${index}.toml`));
  for (const [index, path] of paths.entries()) await writeFile(path, files[index]?.text ?? '', { mode: 0o600 });
  const child = fork(join(import.meta.dirname, 'auth-process.ts'), [String(upstream.port), ...paths], { stdio: 'inherit' });
  bed.started.push(child);
  if (bed.cores !== undefined) spawnSync('taskset', ['-a', '-p', '-c', bed.cores.proxy, String(child.pid)]);
  const [ports]: unknown[] = await once(child, 'message');
  if (!Array.isArray(ports)) throw new Error('The gateways did not start');
  const used = async (): Promise<readonly [microseconds: number, requests: number]> => {
    const answered = once(child, 'message');
    child.send('used');
    const [[microseconds, requests]] = await answered;
    return [Number(microseconds), Number(requests)];
  };
  const clients = new Map<Name, Clients>();
  for (const [index, name] of NAMES.entries()) {
    const token = files[name === 'recorded' ? 0 : index - 1]?.tokens[0];
    const script = await writeScript(bed.directory, { bytes: 600, model: 'primary', ...(token === undefined ? {} : { token }) });
    clients.set(name, startClients(Number(ports[index]), script, bed.started));
  }
  const times: Record<Name, number[]> = { off: [], on: [], many: [], counted: [], limited: [], recorded: [] };
  for (let round = -FIRST_ROUNDS; round < ROUNDS; round += 1) {
    for (const name of orderOfRound(NAMES, round)) {
      const run = clients.get(name);
      run?.process.kill('SIGCONT');
      await sleep(BEGIN_MS);
      const before = await used();
      await sleep(SLICE_MS);
      const after = await used();
      run?.process.kill('SIGSTOP');
      if (round >= 0) times[name].push((after[0] - before[0]) / (after[1] - before[1]));
    }
  }
  for (const [name, each] of clients) {
    const { failures } = parseWrk(await endClients(each));
    if (failures > 0) throw new Error(`${failures} requests of "${name}" failed`);
  }
  const ratio = (name: Name, against: Name): number =>
    median(times[name].flatMap((each, round) => times[against].slice(round, round + 1).map((other) => each / other)));
  const figures = NAMES.map((name) => `${name} ${median(times[name]).toFixed(1)}`).join(', ');
  process.stdout.write(`  microseconds of CPU per request in one process: ${figures}\n`);
  return [
    atMost('  CPU per request in one process, against without', ratio('on', 'off'), { limit: 1.05, unit: '×', digits: 3 }),
    atMost('  the same with all limits that count, against a token without', ratio('counted', 'on'), {
      limit: 1.03,
      unit: '×',
      digits: 3,
    }),
    atMost('  the same with all limits, against a token without', ratio('limited', 'on'), { limit: 1.03, unit: '×', digits: 3 }),
    atMost('  the same with usage recorded, against a token without', ratio('recorded', 'on'), { limit: 1.02, unit: '×', digits: 3 }),
    atMost(`  the same with ${many} tokens, against one`, ratio('many', 'on'), { limit: 1.02, unit: '×', digits: 3 }),
  ];
}

interface Clients {
  readonly process: ChildProcess;
  /** What they print at their end. */
  readonly report: Promise<string>;
}

/** They wait for `SIGCONT`. */
function startClients(port: number, script: string, started: ChildProcess[]): Clients {
  const url = `http://127.0.0.1:${port}/v1/chat/completions`;
  const { promise: report, resolve, reject } = Promise.withResolvers<string>();
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${LOAD_SECONDS}`, '-s', script, '--latency', '--timeout', '30', url];
  const process = execFile('wrk', args, (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
  started.push(process);
  process.kill('SIGSTOP');
  return { process, report };
}

/** Interrupts them until they end: a thread that does not wait for the end may take the signal. */
async function endClients({ process, report }: Clients): Promise<string> {
  process.kill('SIGCONT');
  const timer = setInterval(() => process.kill('SIGINT'), STOP_MS);
  return await report.finally(() => clearInterval(timer));
}
