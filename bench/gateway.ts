/**
 * What the gateway costs: the real service (`svcctl serve` with its loop on, warmed by requests of all kinds), with and without authentication and the fast path, against nginx (one process,
 * keep-alive to the upstream), a bare forwarder on Node, the gateway stripped of everything else, the bare upstream, and llama-swap where it is on the PATH. All are in front
 * of the same upstream, which is nginx answering from memory, or for streams a server on Node. Where there are two cores or more, each proxy has the same core to itself,
 * and `wrk` and the upstreams have the others. Everything is started several times, because two processes of the same program differ: V8 optimises each for the requests that it happens to get first.
 * Needs `wrk`, Linux's `/proc`, and for most rows `nginx`; reports what is missing.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SHORT, SHORT_OTHERWISE, startGateways, type GatewayBed, type Load } from './gateway-bed.ts';
import { addedRows, compareRuns, join, runLoad, timeRequests, type Runs, type Times } from './gateway-runs.ts';
import { reserveCore } from './machine.ts';
import { atLeast, atMost, note, type Outcome, type Pace } from './measure.ts';
import { measurePassStall, passStallRows, type PassStalls } from './pass-stall.ts';
import { hasProgram, type Bed, type RealService } from './proxies.ts';

const BODIES = [
  { what: 'bodies of 4 KB', bytes: 4096, connections: 32, limit: 2.5 },
  { what: 'bodies of 100 KB', bytes: 102_400, connections: 16, limit: 2.5 },
  { what: 'bodies of 10 MB', bytes: 10_485_760, connections: 4, limit: 1.5 },
].map((body) => ({ ...body, name: `${body.what}, ${body.connections} connections` }));
const STREAMS: readonly Load[] = [16, 200].map((connections) => ({
  name: `${connections} streams of 200 chunks`,
  bytes: 600,
  connections,
  stream: true,
  moreRounds: connections > 16 ? 1 : 2,
}));

/** Which proxies are compared with which. Fewer of them follow each other sooner, while the machine is equally fast. */
const WITH_SHORT = ['nginx', 'bare forwarder', 'stripped process', 'real service', 'with authentication', 'llama-swap'];
const WITH_SHORT_OTHERWISE = ['real service', 'without the fast path', 'two services', 'two processes'];
const WITH_BODIES = ['nginx', 'bare forwarder', 'real service', 'without the fast path'];

/** What was measured in one start of everything. */
interface Start {
  readonly bed: Pick<GatewayBed, 'upstream' | 'sharing'>;
  /** By the name of the load. */
  readonly runs: ReadonlyMap<string, Runs>;
  readonly times: Record<'whole' | 'first', Times>;
  readonly stalls: PassStalls;
}

export async function measureGateway(pace: Pace): Promise<Outcome> {
  if (!hasProgram('wrk'))
    return { rows: [atLeast('600 B, 32 connections: requests/s against nginx', 'needs wrk', { limit: 0.4, unit: '×' })], tables: [] };
  const reserved = reserveCore();
  process.stdout.write(
    reserved === undefined
      ? '  no core can be reserved for the proxies: they share all with the load\n'
      : `  proxies have core ${reserved.cores.proxy}, the load and the upstreams ${reserved.cores.load}\n`,
  );
  try {
    const starts: Start[] = [];
    for (let number = 1; number <= pace.starts; number += 1) {
      process.stdout.write(`  start ${number} of ${pace.starts}\n`);
      starts.push(await measureStart(reserved?.cores, pace));
    }
    return report(starts);
  } finally {
    reserved?.release();
  }
}

/** Starts everything, and ends it. */
async function measureStart(cores: Bed['cores'], pace: Pace): Promise<Start> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  const services: RealService[] = [];
  const bed: Bed = { directory, started, cores };
  const stopAll = async (): Promise<void> => {
    for (const { service } of services.splice(0)) await service.stop();
    for (const child of started.splice(0)) child.kill('SIGKILL');
  };
  try {
    const gateways = await startGateways(bed, services);
    const runs = new Map<string, Runs>();
    const run = async (load: Load, proxies: GatewayBed['proxies']): Promise<void> => {
      runs.set(load.name, await runLoad(gateways, load, proxies, pace));
    };
    const proxiesIn = (names: readonly string[]) => new Map([...gateways.proxies].filter(([name]) => names.includes(name)));
    await run(SHORT, proxiesIn(WITH_SHORT));
    await run(SHORT_OTHERWISE, proxiesIn(WITH_SHORT_OTHERWISE));
    for (const load of BODIES) await run(load, proxiesIn(WITH_BODIES));
    for (const load of STREAMS) await run(load, gateways.streams);
    const times = await timeRequests(gateways, pace);
    await stopAll();
    return { bed: gateways, runs, times, stalls: await measurePassStall(bed) };
  } finally {
    await stopAll();
    await rm(directory, { recursive: true, force: true });
  }
}

function report(starts: readonly Start[]): Outcome {
  const outcomes = [
    reportShort(starts),
    ...BODIES.map((body) => reportBody(starts, body)),
    ...STREAMS.map((load) => reportStreams(starts, load)),
  ];
  const added = [
    ...addedRows('one connection: added time, median', join(starts.map(({ times }) => times.whole))),
    ...addedRows('one connection: added time to first token, median', join(starts.map(({ times }) => times.first))),
  ];
  const stalls = passStallRows(starts.map((start) => start.stalls));
  return {
    rows: [...outcomes.flatMap(({ rows }) => rows), ...added, ...stalls],
    tables: outcomes.flatMap(({ tables }) => tables),
  };
}

const runsOf = (starts: readonly Start[], { name }: Load): Runs => join(starts.flatMap(({ runs }) => runs.get(name) ?? []));

/** What a title says after the load. */
function titleOf([first]: readonly Start[], load: Load): string {
  const upstream = load.stream === true ? 'Node' : first?.bed.upstream;
  return `${load.name}, upstream on ${upstream}${first?.bed.sharing}`;
}

function reportShort(starts: readonly Start[]): Outcome {
  const { table, compare } = compareRuns(runsOf(starts, SHORT), titleOf(starts, SHORT), { mayWait: false });
  const otherwise = compareRuns(runsOf(starts, SHORT_OTHERWISE), titleOf(starts, SHORT_OTHERWISE), { mayWait: false });
  const [nginx, forwarder] = [compare('real service', 'nginx'), compare('real service', 'bare forwarder')];
  const guarded = compare('with authentication', 'real service');
  const fast = otherwise.compare('real service', 'without the fast path');
  const [alone] = otherwise.compare('real service', 'two processes').onTwoCores(1.7);
  const rows = [
    atLeast('600 B, 32 connections: requests/s against nginx', ...nginx.throughput(0.4)),
    atLeast('  requests/s against a bare forwarder on Node', ...forwarder.throughput(0.6)),
    atLeast('  requests/s against llama-swap', ...compare('real service', 'llama-swap').throughput(4)),
    atLeast('  requests/s with authentication against without', ...guarded.throughput(0.95)),
    atMost('  CPU per request against nginx', ...nginx.cpu(2.5)),
    atMost('  CPU per request against a bare forwarder on Node', ...forwarder.cpu(1.67)),
    atMost('  CPU per request against the stripped process', ...compare('real service', 'stripped process').cpu(1.05)),
    atMost('  CPU per request with authentication against without', ...guarded.cpu(1.05)),
    atLeast('  requests/s with the fast path against without', ...fast.throughput(1)),
    atMost('  CPU per request with the fast path against without', ...fast.cpu(1)),
    // Both pairs share one core here, which costs the one what it costs the other. With a core each, two services answer twice as much.
    atLeast(
      '  requests/s of two processes on two cores, from CPU per request: against two services',
      ...otherwise.compare('two services', 'two processes').onTwoCores(1.7),
    ),
    note('    the same against one service that has this core to itself', typeof alone === 'number' ? `${alone.toFixed(2)} ×` : alone),
  ];
  return { rows, tables: [table, otherwise.table] };
}

function reportBody(starts: readonly Start[], body: (typeof BODIES)[number]): Outcome {
  const { table, compare } = compareRuns(runsOf(starts, body), titleOf(starts, body), { mayWait: false });
  const rows = [
    atMost(`${body.what}: CPU per request against nginx`, ...compare('real service', 'nginx').cpu(body.limit)),
    atMost(`${body.what}: CPU per request with the fast path against without`, ...compare('real service', 'without the fast path').cpu(1)),
  ];
  return { rows, tables: [table] };
}

function reportStreams(starts: readonly Start[], load: Load): Outcome {
  const { table, compare } = compareRuns(runsOf(starts, load), titleOf(starts, load), { mayWait: true });
  const compared = compare('real service', 'upstream alone').throughput(0.95);
  return { rows: [atLeast(`${load.name}: chunks/s against the bare upstream`, ...compared)], tables: [table] };
}
