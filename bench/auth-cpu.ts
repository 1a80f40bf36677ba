/** The CPU time of a request with and without authentication, of gateways in one process (`auth-process.ts`), in turns of a second. */
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTokenFile } from './auth-tokens.ts';
import { drive, writeScript } from './load.ts';
import { atMost, median, type Row } from './measure.ts';
import { startNativeUpstream, type Bed } from './proxies.ts';

const ROUNDS = 25;
const CONNECTIONS = 32;
const NAMES = ['off', 'on', 'many', 'counted', 'limited'] as const;
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
  const cpuMicroseconds = async (): Promise<number> => {
    const answered = once(child, 'message');
    child.send('cpu');
    return Number((await answered)[0]);
  };
  const measure = async (name: Name): Promise<number> => {
    const index = NAMES.indexOf(name);
    const token = files[index - 1]?.tokens[0];
    const script = await writeScript(bed.directory, { bytes: 600, model: 'primary', ...(token === undefined ? {} : { token }) });
    const before = await cpuMicroseconds();
    const { requests } = await drive({ pid: undefined, port: Number(ports[index]) }, { script, connections: CONNECTIONS, seconds: 1 });
    return ((await cpuMicroseconds()) - before) / requests;
  };
  const times: Record<Name, number[]> = { off: [], on: [], many: [], counted: [], limited: [] };
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const name of round % 2 === 0 ? NAMES : NAMES.toReversed()) {
      const microseconds = await measure(name);
      if (round >= 0) times[name].push(microseconds);
    }
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
    atMost(`  the same with ${many} tokens, against one`, ratio('many', 'on'), { limit: 1.02, unit: '×', digits: 3 }),
  ];
}
