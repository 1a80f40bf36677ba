/**
 * Many streams at once, and short requests at a fixed rate: the real service, nginx and haproxy in front of a native server, measured by a native client (`bench/native/streams.c`, compiled
 * here), because a client or a server on Node would be slower than what is between them. Each proxy has one core to itself.
 */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../test/support/free-port.ts';
import { alternate } from './alternate.ts';
import type { ResultGrid } from './decide/result.ts';
import type { Server } from './load.ts';
import { reserveCore } from './machine.ts';
import { atLeast, atMost, median, type Outcome, type Pace, type Row } from './measure.ts';
import { hasProgram, pinTo, startHaproxy, startLlamaSwap, startNginxProxy, startRealService, type Bed } from './proxies.ts';
import { accepts, cpuSeconds } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const run = promisify(execFile);
const ALONE = 'upstream alone';
const SERVICE = 'real service';
/** `pace`: microseconds between two events of a stream; 0: as fast as they are read. */
const LOADS = [
  { name: '16 fast streams of 200 events', connections: 16, events: 200, pace: 0 },
  { name: '200 fast streams of 200 events', connections: 200, events: 200, pace: 0 },
  { name: '1,000 fast streams of 50 events', connections: 1000, events: 50, pace: 0 },
  { name: '200 streams of 200 events, one each 10 ms', connections: 200, events: 200, pace: 10_000 },
] as const;
const RATES = [2000, 5000, 10_000];
const RATE_CONNECTIONS = 64;
/** A run lasts as long as several streams, so that most of it is not their beginning. */
const SECONDS_OF_RUN = 3;

/** V8 compiles what it has seen often, and its heap has grown by then. */
const WARM_ROUNDS = 4;

type Load = (typeof LOADS)[number];
/** p50, p99, p99.9 and the largest, in milliseconds. */
type Spread = readonly [number, number, number, number];

interface Run {
  readonly events: number;
  readonly failures: number;
  readonly firstMs: Spread;
  readonly delayMs: Spread;
  /** CPU of the proxy for an event, in microseconds. */
  readonly cpuUs: number;
  readonly eventsPerSecond: number;
}

export async function measureStreams({ rounds }: Pace): Promise<Outcome> {
  const reserved = reserveCore();
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  const bed: Bed = { directory, started, cores: reserved?.cores };
  const program = join(directory, 'streams');
  const compiled = spawnSync('cc', ['-O2', '-o', program, join(import.meta.dirname, 'native/streams.c')]);
  if (compiled.status !== 0)
    throw new Error(`The program of streams needs a C compiler: ${compiled.stderr?.toString() ?? 'there is no "cc"'}`);
  const real = await startRealService(bed, { streams: program });
  try {
    const servers = await startProxies(bed, { program, real });
    const client = [...pinTo(bed.cores?.load), program] as const;
    for (let round = 0; round < WARM_ROUNDS; round += 1) for (const load of LOADS) await runLoad(client, load, servers.get(SERVICE));
    const outcomes: { readonly rows: readonly Row[]; readonly grid: ResultGrid }[] = [];
    for (const load of LOADS) {
      const runs = await alternate(servers, rounds, async (server) => await runLoad(client, load, server));
      outcomes.push({ rows: judge(load, runs), grid: gridOf(load.name, runs) });
    }
    const rates = await measureRates(client, servers, rounds);
    return {
      rows: [...outcomes.flatMap(({ rows }) => rows), ...rates.rows],
      tables: [],
      grids: [...outcomes.map(({ grid }) => grid), ...rates.grids],
    };
  } finally {
    await real.service.stop();
    for (const child of started) child.kill('SIGKILL');
    reserved?.release();
    await rm(directory, { recursive: true, force: true });
  }
}

async function startProxies(
  bed: Bed,
  { program, real }: { readonly program: string; readonly real: Awaited<ReturnType<typeof startRealService>> },
): Promise<ReadonlyMap<string, Server>> {
  const port = await freePort();
  const [command, ...args] = [...pinTo(bed.cores?.load), program, 'serve', String(port)];
  bed.started.push(spawn(command, args, { stdio: 'ignore' }));
  await waitUntil(() => accepts(port), { withinMs: 5000, everyMs: 20, failure: () => 'The server of streams did not start' });
  const nginx = hasProgram('nginx') ? await startNginxProxy(bed, port) : undefined;
  const all: readonly (readonly [string, Server | undefined])[] = [
    [ALONE, { pid: undefined, port }],
    ['nginx', nginx],
    ['haproxy', await startHaproxy(bed, port)],
    ['llama-swap', await startLlamaSwap(bed, port)],
    [SERVICE, { pid: real.service.pid, port: real.port }],
  ];
  return new Map(all.flatMap(([name, server]) => (server === undefined ? [] : [[name, server]])));
}

async function runLoad(client: readonly string[], { connections, events, pace }: Load, server: Server | undefined): Promise<Run> {
  if (server === undefined) throw new Error('Start the service first');
  const [command = '', ...args] = client;
  const before = await cpuOf(server);
  const at = performance.now();
  const numbers = [server.port, connections, events, pace, SECONDS_OF_RUN].map(String);
  const { stdout } = await run(command, [...args, 'load', ...numbers, 'streams']);
  const seconds = (performance.now() - at) / 1000;
  const measured: Pick<Run, 'events' | 'failures' | 'firstMs' | 'delayMs'> = JSON.parse(stdout);
  const cpuUs = (((await cpuOf(server)) - before) * 1e6) / measured.events;
  return { ...measured, cpuUs, eventsPerSecond: measured.events / seconds };
}

const cpuOf = async ({ pid }: Server): Promise<number> => (pid === undefined ? Number.NaN : await cpuSeconds(pid));

type Runs = ReadonlyMap<string, readonly Run[]>;

/** Returns the median of the ratios within each round, since the speed of machines drifts. */
function ratio(runs: Runs, [name, other]: readonly [string, string], of: (run: Run) => number): number | string {
  const [mine, theirs] = [runs.get(name), runs.get(other)];
  if (mine === undefined || theirs === undefined) return `no ${other}`;
  return median(mine.map((each, round) => of(each) / of(theirs[round] ?? each)));
}

function judge({ name, connections, pace }: Load, runs: Runs): readonly Row[] {
  const pair = [SERVICE, 'nginx'] as const;
  if (pace > 0) {
    const delays = (runs.get(SERVICE) ?? []).map(({ delayMs }) => delayMs[1]);
    return [
      atMost(`${name}: delay of an event, p99`, median(delays), { limit: 2, unit: 'ms' }),
      atMost(
        `${name}: CPU for an event, against nginx`,
        ratio(runs, pair, (each) => each.cpuUs),
        { limit: 1.2, unit: '×' },
      ),
    ];
  }
  if (connections < 100)
    return [
      atLeast(
        `${name}: events/s against the upstream alone`,
        ratio(runs, [SERVICE, ALONE], (each) => each.eventsPerSecond),
        { limit: 0.85, unit: '×' },
      ),
    ];
  const limit = connections < 500 ? 2 : 1.5;
  return [
    ...(connections < 500
      ? []
      : [
          atMost(
            `${name}: time to the first event against nginx, p50`,
            ratio(runs, pair, (each) => each.firstMs[0]),
            { limit, unit: '×' },
          ),
        ]),
    atMost(
      `${name}: time to the first event against nginx, p99`,
      ratio(runs, pair, (each) => each.firstMs[1]),
      { limit, unit: '×' },
    ),
  ];
}

const medianOf = (runs: readonly Run[], of: (run: Run) => number): number => median(runs.map(of));
const spreadOf = (runs: readonly Run[], of: (run: Run) => Spread): string =>
  ([0, 1, 2, 3] as const).map((at) => medianOf(runs, (each) => of(each)[at]).toFixed(1)).join(', ');

function gridOf(title: string, runs: Runs): ResultGrid {
  return {
    title,
    header: [
      '',
      'events/s',
      'first event in ms: p50, p99, p99.9, largest',
      'delay of an event in ms: p50, p99, p99.9, largest',
      'CPU for an event',
      'failures',
    ],
    rows: [...runs].map(([name, each]) => [
      name,
      medianOf(each, ({ eventsPerSecond }) => eventsPerSecond).toFixed(0),
      spreadOf(each, ({ firstMs }) => firstMs),
      spreadOf(each, ({ delayMs }) => delayMs),
      Number.isNaN(each[0]?.cpuUs) ? '' : `${medianOf(each, ({ cpuUs }) => cpuUs).toFixed(1)} µs`,
      String(each.reduce((sum, { failures }) => sum + failures, 0)),
    ]),
  };
}

/** At a fixed rate, whatever was answered. What a proxy adds is beside the upstream alone in the same round. */
async function measureRates([command = '', ...args]: readonly string[], servers: ReadonlyMap<string, Server>, rounds: number) {
  const rows: Row[] = [];
  const grids: ResultGrid[] = [];
  for (const rate of RATES) {
    const runs = await alternate(servers, rounds, async ({ port }) => {
      const { stdout } = await run(command, [...args, 'rate', ...[port, RATE_CONNECTIONS, rate, SECONDS_OF_RUN].map(String), 'streams']);
      const measured: { readonly ms: Spread; readonly failures: number } = JSON.parse(stdout);
      return measured;
    });
    const alone = runs.get(ALONE) ?? [];
    const added = (name: string, at: 0 | 1 | 2 | 3): number =>
      median((runs.get(name) ?? []).map(({ ms }, round) => ms[at] - (alone[round]?.ms[at] ?? Number.NaN)));
    rows.push(
      atMost(`${rate} requests/s: added by the service, p50`, added(SERVICE, 0), { limit: 0.35, unit: 'ms' }),
      atMost(`${rate} requests/s: added by the service, p99`, added(SERVICE, 1), { limit: 0.94, unit: 'ms' }),
    );
    grids.push({
      title: `${rate} requests/s at a fixed rate, in ms`,
      header: ['', 'added, p50', 'added, p99', 'p50, p99, p99.9, largest', 'failures'],
      rows: [...runs].map(([name, each]) => [
        name,
        name === ALONE ? '' : added(name, 0).toFixed(3),
        name === ALONE ? '' : added(name, 1).toFixed(3),
        ([0, 1, 2, 3] as const).map((at) => median(each.map(({ ms }) => ms[at])).toFixed(3)).join(', '),
        String(each.reduce((sum, { failures }) => sum + failures, 0)),
      ]),
    });
  }
  return { rows, grids };
}
