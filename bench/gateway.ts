/**
 * What the gateway costs: the real service (`svcctl serve` with its loop on) against nginx (one process, keep-alive to the upstream), a bare forwarder on Node,
 * the gateway alone in a process of its own, the bare upstream, and llama-swap where it is on the PATH; all in one run and in front of the same upstream, which is
 * nginx answering from memory. Needs `wrk` and `nginx` on the PATH and Linux's `/proc`, and reports what is missing. Rounds alternate, because the speed of machines
 * drifts.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drive, writeScript, type Run, type Server } from './load.ts';
import { atLeast, atMost, median, type Row } from './measure.ts';
import { measurePassStall } from './pass-stall.ts';
import { startLlamaSwap, startNativeUpstream, startNginxProxy, startNode, startRealService, type Bed } from './proxies.ts';

const ROUNDS = 5;
const CONNECTIONS = 32;
/** A proxy that had less of its core was waiting for something else: its throughput says nothing. */
const LEAST_BUSY = 0.85;
const BODIES = [
  { name: '4 KB', bytes: 4096, connections: 32, limit: 2.5 },
  { name: '100 KB', bytes: 102_400, connections: 16, limit: 2.5 },
  { name: '10 MB', bytes: 10_485_760, connections: 4, limit: 1.5 },
] as const;

type Proxy = 'nginx' | 'forwarder' | 'alone' | 'real' | 'llama-swap';

interface Servers {
  readonly proxies: ReadonlyMap<Proxy, Server>;
  readonly upstream: Server;
  readonly streams: Record<'bare' | 'nginx' | 'real', Server>;
}

export async function measureGateway(): Promise<readonly Row[]> {
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0) return [atLeast('real service against nginx', `needs ${missing.join(' and ')}`, { limit: 0.4, unit: '×' })];
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  const bed: Bed = { directory, started };
  const real = await startRealService(bed);
  try {
    const upstream = await startNativeUpstream(bed);
    const alone = await startNode(bed, 'gateway-process.ts', [String(upstream.port)]);
    const swap = await startLlamaSwap(bed, upstream.port);
    const realServer = { pid: real.service.pid, port: real.port };
    const proxies = new Map<Proxy, Server>([
      ['nginx', await startNginxProxy(bed, upstream.port)],
      ['forwarder', await startNode(bed, 'bare-forwarder.ts', [String(upstream.port)])],
      ['alone', alone],
      ['real', realServer],
      ...(swap === undefined ? [] : [['llama-swap', swap] as const]),
    ]);
    const bare = { pid: undefined, port: real.upstreams.streams };
    const streams = { bare, nginx: await startNginxProxy(bed, bare.port), real: realServer };
    const rows = await measureAll(directory, { proxies, upstream, streams });
    return [...rows, await measurePassStall(bed)];
  } finally {
    await real.service.stop();
    for (const child of started) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

async function measureAll(directory: string, servers: Servers): Promise<readonly Row[]> {
  const plain = await writeScript(directory, { bytes: 600, model: 'primary' });
  return [
    ...(await measureThroughput(servers, plain)),
    ...(await measureBodies(directory, servers)),
    ...(await measureStreams(directory, servers)),
    ...(await measureLatency(servers, plain)),
  ];
}

async function measureThroughput({ proxies }: Servers, script: string): Promise<readonly Row[]> {
  const runs = await alternate(proxies, (server) => drive(server, { script, connections: CONNECTIONS }));
  const table = [...runs].map(([proxy, of]) => {
    const busy = median(of.map((run) => run.busy));
    const figures = `${median(of.map((run) => run.requestsPerSecond)).toFixed(0)} requests/s, ${(median(of.map((run) => run.cpu)) * 1e4).toFixed(2)} CPU s per 10,000`;
    return note(`  ${proxy}: ${(busy * 100).toFixed(0)} % of a core${busy < LEAST_BUSY ? ' (its throughput is not valid)' : ''}`, figures);
  });
  const real = runs.get('real') ?? [];
  const throughput = (other: Proxy): number | string => {
    const against = runs.get(other);
    if (against === undefined) return `no ${other}`;
    const idle = [...real, ...against].find((run) => run.busy < LEAST_BUSY);
    if (idle !== undefined) return `${ratio(real, against, (run) => run.requestsPerSecond).toFixed(2)} × (waited)`;
    return ratio(real, against, (run) => run.requestsPerSecond);
  };
  const cpu = (other: Proxy): number => ratio(real, runs.get(other) ?? [], (run) => run.cpu);
  return [
    atLeast('600 B, 32 connections: real service against nginx', throughput('nginx'), { limit: 0.4, unit: '×' }),
    atLeast('  against a bare forwarder on Node', throughput('forwarder'), { limit: 0.6, unit: '×' }),
    atLeast('  against llama-swap', throughput('llama-swap'), { limit: 4, unit: '×' }),
    atMost('  CPU per request against nginx', cpu('nginx'), { limit: 2.5, unit: '×' }),
    atMost('  CPU per request against a bare forwarder on Node', cpu('forwarder'), { limit: 1.67, unit: '×' }),
    atMost('  CPU per request against the gateway alone', cpu('alone'), { limit: 1.05, unit: '×' }),
    ...table,
  ];
}

/** In front of the upstream on Node, because nginx answers from memory before it has read a large body. It does not matter who waits: only CPU time is compared. */
async function measureBodies(directory: string, { streams }: Servers): Promise<readonly Row[]> {
  const compared = new Map([['nginx', streams.nginx] as const, ['real', streams.real] as const]);
  const rows: Row[] = [];
  for (const { name, bytes, connections, limit } of BODIES) {
    const script = await writeScript(directory, { bytes, model: 'streams' });
    const runs = await alternate(compared, (server) => drive(server, { script, connections }));
    const cpu = ratio(runs.get('real') ?? [], runs.get('nginx') ?? [], (run) => run.cpu);
    rows.push(atMost(`bodies of ${name}: CPU per request against nginx`, cpu, { limit, unit: '×' }));
  }
  return rows;
}

async function measureStreams(directory: string, { streams }: Servers): Promise<readonly Row[]> {
  const script = await writeScript(directory, { bytes: 600, model: 'streams', stream: true });
  const compared = new Map([['bare', streams.bare] as const, ['real', streams.real] as const]);
  const rows: Row[] = [];
  for (const connections of [16, 200]) {
    const runs = await alternate(compared, (server) => drive(server, { script, connections }));
    const value = ratio(runs.get('real') ?? [], runs.get('bare') ?? [], (run) => run.requestsPerSecond);
    rows.push(atLeast(`${connections} streams of 200 chunks: chunks/s against the bare upstream`, value, { limit: 0.95, unit: '×' }));
  }
  return rows;
}

async function measureLatency({ proxies, upstream }: Servers, script: string): Promise<readonly Row[]> {
  const compared = new Map<Proxy | 'bare', Server>([
    ['bare', upstream],
    ...[...proxies].filter(([proxy]) => proxy === 'nginx' || proxy === 'real'),
  ]);
  const runs = await alternate(compared, (server) => drive(server, { script, connections: 1 }));
  const of = (name: Proxy | 'bare'): number => median((runs.get(name) ?? []).map((run) => run.medianUs));
  const added = { nginx: of('nginx') - of('bare'), real: of('real') - of('bare') };
  return [
    atMost('one connection: added time, median, against nginx', added.real / added.nginx, { limit: 3, unit: '×' }),
    note('  in microseconds: real service, nginx', `${added.real.toFixed(0)}, ${added.nginx.toFixed(0)}`),
  ];
}

/** Runs each of the servers in each round, the order reversed in every second one, after one run of each to warm up. */
async function alternate<K>(
  servers: ReadonlyMap<K, Server>,
  run: (server: Server) => Promise<Run>,
): Promise<ReadonlyMap<K, readonly Run[]>> {
  const runs = new Map<K, Run[]>();
  for (let round = -1; round < ROUNDS; round += 1) {
    const order = [...servers];
    for (const [name, server] of round % 2 === 0 ? order : order.reverse()) {
      const made = await run(server);
      if (round >= 0) runs.set(name, [...(runs.get(name) ?? []), made]);
    }
  }
  return runs;
}

/** The median over rounds of the ratio within one round. */
function ratio(mine: readonly Run[], other: readonly Run[], of: (run: Run) => number): number {
  return median(mine.flatMap((run, round) => other.slice(round, round + 1).map((against) => of(run) / of(against))));
}

function note(what: string, figure: string): Row {
  return { what, figure, goal: '-', met: undefined };
}
