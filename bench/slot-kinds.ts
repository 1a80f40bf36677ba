/** The CPU time of a request to a slot of this machine, to a preset of it, and to a slot on another machine, in one process, in turns of a second. */
import { spawnSync, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { orderOfRound } from './decide/order-of-round.ts';
import { drive, writeScript } from './load.ts';
import { atMost, median, note, type Row } from './measure.ts';
import { startNativeUpstream } from './proxies.ts';

const ROUNDS = 15;
const CONNECTIONS = 32;
const MODELS = { local: 'primary', preset: 'primary:calm', remote: 'far' } as const;
type Kind = keyof typeof MODELS;
const KINDS: readonly Kind[] = ['local', 'preset', 'remote'];

export async function measureSlotKinds(): Promise<readonly Row[]> {
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0)
    return [atMost('CPU of a request to another machine', `needs ${missing.join(' and ')}`, { limit: 1.2, unit: '×' })];
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  try {
    const times = await measure({ directory, started });
    const ratio = (kind: Kind): number =>
      median(times[kind].flatMap((each, round) => times.local.slice(round, round + 1).map((other) => each / other)));
    return [
      note('CPU of a request to a slot of this machine', `${median(times.local).toFixed(1)} µs`),
      atMost('  to a preset of it, against that', ratio('preset'), { limit: 1.05, unit: '×', digits: 3 }),
      atMost('  to a slot on another machine, against that', ratio('remote'), { limit: 1.2, unit: '×', digits: 3 }),
    ];
  } finally {
    for (const child of started) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

async function measure(bed: { readonly directory: string; readonly started: ChildProcess[] }): Promise<Record<Kind, number[]>> {
  const upstream = await startNativeUpstream(bed);
  const child = fork(join(import.meta.dirname, 'slot-kinds-process.ts'), [String(upstream.port)], { stdio: 'inherit' });
  bed.started.push(child);
  const [port]: unknown[] = await once(child, 'message');
  const cpuMicroseconds = async (): Promise<number> => {
    const answered = once(child, 'message');
    child.send('cpu');
    return Number((await answered)[0]);
  };
  const times: Record<Kind, number[]> = { local: [], preset: [], remote: [] };
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const kind of orderOfRound(KINDS, round)) {
      const script = await writeScript(bed.directory, { bytes: 600, model: MODELS[kind] });
      const before = await cpuMicroseconds();
      const { requests, failures } = await drive({ pid: undefined, port: Number(port) }, { script, connections: CONNECTIONS, seconds: 1 });
      if (failures > 0) throw new Error(`${failures} requests of "${kind}" have failed`);
      if (round >= 0) times[kind].push(((await cpuMicroseconds()) - before) / requests);
    }
  }
  return times;
}
