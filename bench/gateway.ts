/**
 * What the gateway costs: the real service (`svcctl serve` with its loop on, warmed by requests of all kinds), with and without authentication and the fast path, against nginx (one process,
 * keep-alive to the upstream), a bare forwarder on Node, the gateway stripped of everything else, the bare upstream, and llama-swap where it is on the PATH. All are in front
 * of the same upstream, which is nginx answering from memory, or for streams a server on Node. Where there are two cores or more, each proxy has the same core to itself,
 * and `wrk` and the upstreams have the others. Needs `wrk`, Linux's `/proc`, and for most rows `nginx`; reports what is missing.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTokenFile } from './auth-tokens.ts';
import { alternate } from './alternate.ts';
import { doubtOf, ratioOfRuns, summarise, summaryLine, type Run } from './decide/summarise.ts';
import { FIRST_TOKEN_ROUNDS, measureFirstToken } from './first-token.ts';
import { driveAndCount, writeScript, type Server } from './load.ts';
import { atLeast, atMost, median, note, type Outcome, type Pace, type Row } from './measure.ts';
import { warmByMixedShapes } from './mixed-shapes.ts';
import { measurePassStall } from './pass-stall.ts';
import { hasProgram, startLlamaSwap, startNginxProxy, startNode, startRealService, type Bed, type RealService } from './proxies.ts';
import { reserveCore } from './machine.ts';
import { workersOf } from '../test/workers/support/worker-processes.ts';

const WARM_SECONDS = 5;
/** Only streams that end within a run are counted: with more connections they take longer, and runs do too. */
const MANY = 100;
const BODIES = [
  { name: '4 KB', bytes: 4096, connections: 32, limit: 2.5 },
  { name: '100 KB', bytes: 102_400, connections: 16, limit: 2.5 },
  { name: '10 MB', bytes: 10_485_760, connections: 4, limit: 1.5 },
] as const;

/** What is not measured with large bodies. */
const ONLY_SHORT: ReadonlySet<string> = new Set(['llama-swap', 'with authentication', 'two services', 'two processes']);

const PROXIES = [
  'nginx',
  'bare forwarder',
  'stripped process',
  'real service',
  'without the fast path',
  'with authentication',
  'two services',
  'two processes',
  'llama-swap',
] as const;
type Proxy = (typeof PROXIES)[number];

interface Measured extends Server {
  readonly token?: string;
}

interface Bench {
  readonly directory: string;
  readonly pace: Pace;
  readonly upstream: 'nginx' | 'Node';
  /** What the titles of tables say about the cores. */
  readonly sharing: string;
  readonly proxies: ReadonlyMap<Proxy, Measured>;
  /** In front of the upstream of streams. */
  readonly streams: ReadonlyMap<'upstream alone' | Proxy, Measured>;
  readonly bare: Server;
}

export async function measureGateway(pace: Pace): Promise<Outcome> {
  if (!hasProgram('wrk'))
    return { rows: [atLeast('600 B, 32 connections: requests/s against nginx', 'needs wrk', { limit: 0.4, unit: '×' })], tables: [] };
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  const services: RealService[] = [];
  const reserved = reserveCore();
  const bed: Bed = { directory, started, cores: reserved?.cores };
  process.stdout.write(
    reserved === undefined
      ? '  no core can be reserved for the proxies: they share all with the load\n'
      : `  proxies have core ${reserved.cores.proxy}, the load and the upstreams ${reserved.cores.load}\n`,
  );
  try {
    const outcome = await measureAll(await startAll(bed, services, pace));
    for (const { service } of services.splice(0)) await service.stop();
    for (const child of started.splice(0)) child.kill('SIGKILL');
    return { ...outcome, rows: [...outcome.rows, ...(await measurePassStall(bed))] };
  } finally {
    for (const { service } of services) await service.stop();
    for (const child of started) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
    reserved?.release();
  }
}

async function startAll(bed: Bed, services: RealService[], pace: Pace): Promise<Bench> {
  const real = await startRealService(bed);
  services.push(real);
  const { tokens, text } = await createTokenFile({ known: 1, total: 1 });
  const [token = ''] = tokens;
  const settings = { SVC_AUTH_ENABLED: '1', SVC_PORT_RANGE: '18980-19079' };
  const guarded = await startRealService(bed, { settings, tokens: text, token });
  services.push(guarded);
  const slow = await startRealService(bed, { settings: { SVC_FAST_PATH: '0', SVC_PORT_RANGE: '19080-19179' } });
  services.push(slow);
  const double = await startRealService(bed, { settings: { SVC_WORKERS: '2', SVC_PORT_RANGE: '19180-19279' } });
  services.push(double);
  const other = await startRealService(bed, { settings: { SVC_PORT_RANGE: '19280-19379' } });
  services.push(other);
  const { primary, streams } = real.upstreams;
  const stripped = await startNode(bed, 'gateway-process.ts', [String(primary), '1', String(streams)]);
  const hasNginx = hasProgram('nginx');
  const swap = await startLlamaSwap(bed, primary);
  const realServer = { pid: real.service.pid, port: real.port };
  const guardedServer = { pid: guarded.service.pid, port: guarded.port, token };
  const slowServer = { pid: slow.service.pid, port: slow.port };
  const doubleServer = { pid: double.service.pid, morePids: await workersOf(double.service.pid), port: double.port };
  const otherServer = { pid: other.service.pid, port: other.port };
  const gateways: readonly Measured[] = [stripped, realServer, slowServer, guardedServer, doubleServer, otherServer];
  for (const gateway of gateways) await warmByMixedShapes(gateway.port, WARM_SECONDS, gateway.token);
  return {
    directory: bed.directory,
    pace,
    upstream: hasNginx ? 'nginx' : 'Node',
    sharing: bed.cores === undefined ? ', all on the same cores' : '',
    bare: { pid: undefined, port: primary },
    proxies: new Map<Proxy, Measured>([
      ...(hasNginx ? [['nginx', await startNginxProxy(bed, primary)] as const] : []),
      ['bare forwarder', await startNode(bed, 'bare-forwarder.ts', [String(primary)])],
      ['stripped process', stripped],
      ['real service', realServer],
      ['without the fast path', slowServer],
      ['with authentication', guardedServer],
      ['two services', { ...realServer, morePids: [otherServer.pid], morePorts: [otherServer.port] }],
      ['two processes', doubleServer],
      ...(swap === undefined ? [] : [['llama-swap', swap] as const]),
    ]),
    streams: new Map<'upstream alone' | Proxy, Measured>([
      ['upstream alone', { pid: undefined, port: streams }],
      ...(hasNginx ? [['nginx', await startNginxProxy(bed, streams)] as const] : []),
      ['stripped process', stripped],
      ['real service', realServer],
    ]),
  };
}

async function measureAll(bench: Bench): Promise<Outcome> {
  const outcomes = [await measureShort(bench), await measureBodies(bench), await measureStreams(bench), await measureAdded(bench)];
  return { rows: outcomes.flatMap(({ rows }) => rows), tables: outcomes.flatMap(({ tables }) => tables) };
}

async function measureShort(bench: Bench): Promise<Outcome> {
  const title = `600 B, 32 connections, upstream on ${bench.upstream}${bench.sharing}`;
  const load = { bytes: 600, connections: 32 };
  const measured = await measureProxies(bench, { title, proxies: bench.proxies, load, mayWait: false });
  const against = (other: Proxy): ReturnType<Measurement['compare']> => measured.compare('real service', other);
  const [nginx, forwarder, stripped, swap] = [
    against('nginx'),
    against('bare forwarder'),
    against('stripped process'),
    against('llama-swap'),
  ];
  const guarded = measured.compare('with authentication', 'real service');
  const fast = against('without the fast path');
  const apart = measured.compare('two services', 'two processes').onTwoCores(1.7);
  const [alone] = against('two processes').onTwoCores(1.7);
  const rows = [
    atLeast('600 B, 32 connections: requests/s against nginx', ...nginx.throughput(0.4)),
    atLeast('  requests/s against a bare forwarder on Node', ...forwarder.throughput(0.6)),
    atLeast('  requests/s against llama-swap', ...swap.throughput(4)),
    atLeast('  requests/s with authentication against without', ...guarded.throughput(0.95)),
    atMost('  CPU per request against nginx', ...nginx.cpu(2.5)),
    atMost('  CPU per request against a bare forwarder on Node', ...forwarder.cpu(1.67)),
    atMost('  CPU per request against the stripped process', ...stripped.cpu(1.05)),
    atMost('  CPU per request with authentication against without', ...guarded.cpu(1.05)),
    atLeast('  requests/s with the fast path against without', ...fast.throughput(1)),
    atMost('  CPU per request with the fast path against without', ...fast.cpu(1)),
    // Both pairs share one core here, which costs the one what it costs the other. With a core each, two services answer twice as much.
    atLeast('  requests/s of two processes on two cores, from CPU per request: against two services', ...apart),
    note('    the same against one service that has this core to itself', typeof alone === 'number' ? `${alone.toFixed(2)} ×` : alone),
  ];
  return { rows, tables: [measured.table] };
}

async function measureBodies(bench: Bench): Promise<Outcome> {
  const proxies = new Map([...bench.proxies].filter(([name]) => !ONLY_SHORT.has(name)));
  const outcomes: Outcome[] = [];
  for (const { name, bytes, connections, limit } of BODIES) {
    const title = `bodies of ${name}, ${connections} connections, upstream on ${bench.upstream}${bench.sharing}`;
    const measured = await measureProxies(bench, { title, proxies, load: { bytes, connections }, mayWait: false });
    const compared = (other: Proxy, most: number): Judged => measured.compare('real service', other).cpu(most);
    const rows = [
      atMost(`bodies of ${name}: CPU per request against nginx`, ...compared('nginx', limit)),
      atMost(`bodies of ${name}: CPU per request with the fast path against without`, ...compared('without the fast path', 1)),
    ];
    outcomes.push({ rows, tables: [measured.table] });
  }
  return { rows: outcomes.flatMap(({ rows }) => rows), tables: outcomes.flatMap(({ tables }) => tables) };
}

/** A proxy that waits for the upstream is as it should be here. */
async function measureStreams(bench: Bench): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const connections of [16, 200]) {
    const title = `${connections} streams of 200 chunks, upstream on Node${bench.sharing}`;
    const load = { bytes: 600, connections, stream: true };
    const measured = await measureProxies(bench, { title, proxies: bench.streams, load, mayWait: true });
    const compared = measured.compare('real service', 'upstream alone');
    const what = `${connections} streams of 200 chunks: chunks/s against the bare upstream`;
    outcomes.push({ rows: [atLeast(what, ...compared.throughput(0.95))], tables: [measured.table] });
  }
  return { rows: outcomes.flatMap(({ rows }) => rows), tables: outcomes.flatMap(({ tables }) => tables) };
}

interface Loaded {
  readonly title: string;
  readonly proxies: ReadonlyMap<string, Measured>;
  readonly load: { readonly bytes: number; readonly connections: number; readonly stream?: boolean };
  readonly mayWait: boolean;
}

type Judged = readonly [
  value: number | string,
  limit: { readonly limit: number; readonly unit: string; readonly doubt?: string | undefined },
];

interface Measurement {
  readonly table: Outcome['tables'][number];
  /** `onTwoCores`: requests/s of `other` on two cores against those of `mine` on one, computed from CPU per request. */
  compare(mine: string, other: string): Record<'throughput' | 'cpu' | 'onTwoCores', (limit: number) => Judged>;
}

async function measureProxies({ directory, pace }: Bench, { title, proxies, load, mayWait }: Loaded): Promise<Measurement> {
  const { bytes, connections, stream = false } = load;
  const model = stream ? 'streams' : 'primary';
  const runs = await alternate(proxies, pace.rounds, async ({ token, ...server }) => {
    const script = await writeScript(directory, { bytes, model, stream, ...(token === undefined ? {} : { token }) });
    return driveAndCount(server, { script, connections, seconds: connections > MANY ? 2 * pace.seconds : pace.seconds });
  });
  const summaries = new Map([...runs].map(([name, of]) => [name, summarise(name, of, { mayWait })] as const));
  process.stdout.write(`  ${title}\n`);
  for (const summary of summaries.values()) process.stdout.write(`    ${summaryLine(summary)}\n`);
  const against = stream ? 'upstream alone' : summaries.has('nginx') ? 'nginx' : 'bare forwarder';
  return {
    table: { title, against, rows: [...summaries.values()] },
    compare(mine, other) {
      const [own, others] = [runs.get(mine) ?? [], runs.get(other) ?? []];
      const both = [mine, other].flatMap((name) => summaries.get(name) ?? []);
      const judged =
        (what: 'throughput' | 'cpu', of: (run: Run) => number, times = 1) =>
        (limit: number): Judged => {
          const value = others.length === 0 ? `no ${other}` : times * ratioOfRuns(own, others, of);
          return [value, { limit, unit: '×', doubt: doubtOf(both, what) }];
        };
      return {
        throughput: judged('throughput', (run) => run.requestsPerSecond),
        cpu: judged('cpu', (run) => run.cpu),
        onTwoCores: judged('cpu', (run) => run.cpu, 2),
      };
    },
  };
}

/** What each proxy adds to one request at a time: until the whole of a short answer, and until the first chunk of a stream. */
async function measureAdded(bench: Bench): Promise<Outcome> {
  const { directory, pace, proxies, streams, bare } = bench;
  const script = await writeScript(directory, { bytes: 600, model: 'primary' });
  const pick = (from: ReadonlyMap<string, Measured>): readonly (readonly [string, Measured])[] =>
    [...from].filter(([name]) => name === 'nginx' || name === 'real service');
  const whole = await alternate(new Map([['upstream alone', bare], ...pick(proxies)]), pace.rounds, async (server) => {
    const { medianUs, failures } = await driveAndCount(server, { script, connections: 1, seconds: pace.seconds });
    return { us: medianUs, failures };
  });
  const compared = new Map([...streams].filter(([name]) => name !== 'stripped process'));
  const first = await alternate(compared, pace.rounds * FIRST_TOKEN_ROUNDS, async ({ port }) => {
    const { ms, failures } = await measureFirstToken(port, pace.seconds / FIRST_TOKEN_ROUNDS);
    return { us: ms * 1000, failures };
  });
  return {
    rows: [
      ...addedRows('one connection: added time, median', whole),
      ...addedRows('one connection: added time to first token, median', first),
    ],
    tables: [],
  };
}

type Times = ReadonlyMap<string, readonly { readonly us: number; readonly failures: number }[]>;

/** Differences are taken within each round, in which the machine was equally fast for all. */
function addedRows(what: string, times: Times): readonly Row[] {
  const alone = times.get('upstream alone') ?? [];
  const base = median(alone.map(({ us }) => us));
  const addedBy = (name: string): number => median((times.get(name) ?? []).map(({ us }, round) => us - (alone[round]?.us ?? Number.NaN)));
  const [nginx, real] = [addedBy('nginx'), addedBy('real service')];
  const failures = [...times.values()].flat().reduce((sum, each) => sum + each.failures, 0);
  const doubt = failures > 0 ? `void: ${failures} requests failed` : nginx <= 0 ? 'invalid: nginx added nothing' : undefined;
  const value = times.has('nginx') ? real / nginx : 'no nginx';
  return [
    atMost(`${what}, against nginx`, value, { limit: 3, unit: '×', doubt }),
    note(
      `  ${what}: µs of upstream alone, added by nginx and by the real service`,
      [base, nginx, real].map((us) => us.toFixed(0)).join(', '),
    ),
  ];
}
