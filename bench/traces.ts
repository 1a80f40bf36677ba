/** The CPU time of a request with and without traces, of gateways in one process (`traces-process.ts`), in turns of a second. A process with one core answers as many requests as fit into its CPU time. */
import { fork, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { orderOfRound } from './decide/order-of-round.ts';
import { drive, writeScript } from './load.ts';
import { atLeast, median, note, type Row } from './measure.ts';
import { startNativeUpstream } from './proxies.ts';

const ROUNDS = 25;
const CONNECTIONS = 32;
const NAMES = ['none', 'few', 'all'] as const;
type Name = (typeof NAMES)[number];
const GOAL = { limit: 0.95, unit: '×', digits: 3 };

export async function measureTraces(): Promise<readonly Row[]> {
  const what = 'requests/s of one core with 1 % of traces, against none';
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0) return [atLeast(what, `needs ${missing.join(' and ')}`, GOAL)];
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  let received = 0;
  const collector = createServer((req, res) => {
    req.on('data', (piece: Buffer) => (received += piece.length)).on('end', () => res.writeHead(200).end());
  });
  try {
    const times = await measureAll({ directory, started }, await listen(collector));
    const figures = NAMES.map((name) => `${name} ${median(times[name]).toFixed(1)}`).join(', ');
    process.stdout.write(`  microseconds of CPU per request in one process: ${figures}; ${(received / 1e6).toFixed(1)} MB of traces\n`);
    const ratio = (name: Name): number => median(times[name].map((each, round) => (times.none[round] ?? Number.NaN) / each));
    return [atLeast(what, ratio('few'), GOAL), note('the same with all traces', `${ratio('all').toFixed(2)} ×`)];
  } finally {
    for (const child of started) child.kill('SIGKILL');
    collector.closeAllConnections();
    collector.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function measureAll(
  bed: Parameters<typeof startNativeUpstream>[0],
  collectorPort: number,
): Promise<Readonly<Record<Name, number[]>>> {
  const upstream = await startNativeUpstream(bed);
  const env = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collectorPort}` };
  const child = fork(join(import.meta.dirname, 'traces-process.ts'), [String(upstream.port)], { stdio: 'inherit', env });
  bed.started.push(child);
  const [ports]: unknown[] = await once(child, 'message');
  if (!Array.isArray(ports)) throw new Error('The gateways did not start');
  const script = await writeScript(bed.directory, { bytes: 600, model: 'primary' });
  const cpuMicroseconds = async (): Promise<number> => {
    const answered = once(child, 'message');
    child.send('cpu');
    return Number((await answered)[0]);
  };
  const measure = async (name: Name): Promise<number> => {
    const before = await cpuMicroseconds();
    const port = Number(ports[NAMES.indexOf(name)]);
    const { requests } = await drive({ pid: undefined, port }, { script, connections: CONNECTIONS, seconds: 1 });
    return ((await cpuMicroseconds()) - before) / requests;
  };
  const times: Record<Name, number[]> = { none: [], few: [], all: [] };
  for (let round = -2; round < ROUNDS; round += 1)
    for (const name of orderOfRound(NAMES, round)) {
      const microseconds = await measure(name);
      if (round >= 0) times[name].push(microseconds);
    }
  return times;
}
