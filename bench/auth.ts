/**
 * What authentication costs: real services without it, with one token, with 10,000 tokens, and with limits of the token, behind the same load in one run. Short rounds
 * alternate between them, and each ratio is that of two neighbours in a round, so that other programs of the machine affect both sides alike. Two processes of the same work differ by up to
 * 10 %, so all are started several times. Then how long the first use of a token takes, and how long a revocation takes to reach another replica of a cluster.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALL_LIMITS, COUNTED, measureCpu } from './auth-cpu.ts';
import { measureInMemory } from './auth-memory.ts';
import { measureRevocation } from './auth-replicas.ts';
import { createTokenFile } from './auth-tokens.ts';
import { orderOfRound } from './decide/order-of-round.ts';
import type { Run } from './decide/summarise.ts';
import { drive, writeScript, type Server } from './load.ts';
import { reserveCore } from './machine.ts';
import { atLeast, atMost, median, type Row } from './measure.ts';
import { startRealService, type Bed, type RealService } from './proxies.ts';

const STARTS = 5;
/** In each start, after those in which the code is compiled: a service that counts has more of it. */
const ROUNDS = 6;
const FIRST_ROUNDS = 4;
const CONNECTIONS = 32;
const SECONDS = 1;
const MANY = 10_000;
const FIRST_USES = 15;
/** A service that had less of a core was waiting for other programs, and its figures say nothing about its own work. */
const LEAST_BUSY = 0.7;
const LEAST = { limit: 0.95, unit: '×', digits: 3 };
const LIMITED = { ...LEAST, limit: 0.97 };
/** Of the tokens that the first one needs, and no request had used before. */
const FIRST_USE_MS = 150;

/** `counted`: with all limits that count. `limited`: with all limits. `unrecorded`: like `on`, but usage is not recorded. */
const NAMES = ['off', 'counted', 'unrecorded', 'on', 'limited', 'many'] as const;
type Name = (typeof NAMES)[number];

interface Measured {
  readonly service: RealService;
  readonly server: Server;
  readonly script: string;
}

interface Bench {
  measured(name: Name): Measured;
  /** Tokens of `on` that were not used yet. */
  readonly unused: readonly string[];
}

export async function measureAuth(): Promise<readonly Row[]> {
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0) return [atLeast('requests/s with authentication', `needs ${missing.join(' and ')}`, LEAST)];
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  const services: RealService[] = [];
  // Waking an idle core costs a virtual machine as much as the request: which processes share a core must not change.
  const reserved = reserveCore();
  try {
    const bed = { directory, started, cores: reserved?.cores };
    const cpu = await measureCpu(bed, MANY);
    const inMemory = await measureInMemory(directory);
    const starts: Runs[] = [];
    const firstUse: Row[] = [];
    for (let start = 1; start <= STARTS; start += 1) {
      const bench = await startServices(bed, services, start);
      starts.push(await measureThroughput(bench));
      if (start === STARTS) firstUse.push(...(await measureFirstUse(bench)));
      for (const { service } of services.splice(0)) await service.stop();
    }
    return [...judge(starts), ...cpu, ...inMemory, ...firstUse, await measureRevocation()];
  } finally {
    for (const { service } of services) await service.stop();
    for (const child of started) child.kill('SIGKILL');
    reserved?.release();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Who starts first is different in each round, because services that start later were faster by 1 to 2 %. */
async function startServices(bed: Bed, services: RealService[], round: number): Promise<Bench> {
  const load = { bytes: 600, model: 'primary' };
  const start = async (firstPort: number, file?: Awaited<ReturnType<typeof createTokenFile>>, more: Record<string, string> = {}) => {
    const range = { SVC_PORT_RANGE: `${firstPort}-${firstPort + 99}` };
    const [token] = file?.tokens ?? [];
    const options = file === undefined || token === undefined ? {} : { tokens: file.text, token };
    const settings = { ...range, ...more, ...(file === undefined ? {} : { SVC_AUTH_ENABLED: '1' }) };
    const service = await startRealService(bed, { settings, ...options });
    services.push(service);
    const script = await writeScript(bed.directory, { ...load, ...(token === undefined ? {} : { token }) });
    return { service, server: { pid: service.service.pid, port: service.port }, script };
  };
  const one = await createTokenFile({ known: 1 + FIRST_USES, total: 1 + FIRST_USES });
  const starts = {
    off: async () => await start(18_080),
    on: async () => await start(18_280, one),
    many: async () => await start(18_480, await createTokenFile({ known: 1, total: MANY })),
    counted: async () => await start(18_680, await createTokenFile({ known: 1, total: 1, limits: COUNTED })),
    limited: async () => await start(18_880, await createTokenFile({ known: 1, total: 1, limits: ALL_LIMITS })),
    unrecorded: async () => await start(17_880, await createTokenFile({ known: 1, total: 1 }), { SVC_USAGE: 'off' }),
  };
  const running = new Map<Name, Measured>();
  for (const name of orderOfRound(NAMES, round)) running.set(name, await starts[name]());
  return { measured: (name) => running.get(name) ?? fault(name), unused: one.tokens.slice(1) };
}

function fault(name: Name): never {
  throw new Error(`The service "${name}" was not started`);
}

type Runs = Readonly<Record<Name, Run[]>>;

/** Each server once in a round, in an order that favours none. */
async function measureThroughput({ measured }: Bench): Promise<Runs> {
  const runs: Runs = { off: [], on: [], many: [], counted: [], limited: [], unrecorded: [] };
  for (let round = -FIRST_ROUNDS; round < ROUNDS; round += 1) {
    for (const name of orderOfRound(NAMES, round)) {
      const { script, server } = measured(name);
      const run = await drive(server, { script, connections: CONNECTIONS, seconds: SECONDS });
      if (round >= 0) runs[name].push(run);
    }
  }
  return runs;
}

/** Each ratio is the median of the starts, of the medians of their rounds. */
function judge(starts: readonly Runs[]): readonly Row[] {
  const all = (name: Name, of: (run: Run) => number): number => median(starts.flatMap((runs) => runs[name].map(of)));
  const waited = NAMES.some((name) => all(name, ({ busy }) => busy) < LEAST_BUSY);
  const perSecond = (run: Run): number => run.requestsPerSecond;
  const ratiosOf = (name: Name, against: Name): readonly number[] =>
    starts.map((runs) =>
      median(runs[name].flatMap((run, round) => runs[against].slice(round, round + 1).map((other) => perSecond(run) / perSecond(other)))),
    );
  const ratio = (name: Name, against: Name): number | string => {
    const ratios = ratiosOf(name, against);
    process.stdout.write(`  ${name} against ${against}, in each start: ${ratios.map((value) => value.toFixed(3)).join(', ')}\n`);
    return waited ? `${median(ratios).toFixed(3)} × (waited)` : median(ratios);
  };
  for (const name of NAMES) {
    const cpu = all(name, (run) => run.cpu) * 1e6;
    const busy = all(name, (run) => run.busy) * 100;
    process.stdout.write(
      `  ${name}: ${all(name, perSecond).toFixed(0)} requests/s, ${cpu.toFixed(1)} µs of CPU per request, ${busy.toFixed(0)} % of a core\n`,
    );
  }
  return [
    atLeast('requests/s with authentication, against without', ratio('on', 'off'), LEAST),
    atLeast(`requests/s with ${MANY} tokens, against a few`, ratio('many', 'on'), { ...LEAST, limit: 0.98 }),
    atLeast('requests/s with all limits that count, against a token without', ratio('counted', 'on'), LIMITED),
    atLeast('requests/s with all limits, against a token without', ratio('limited', 'on'), LIMITED),
    atLeast('requests/s with usage recorded, against not recorded', ratio('on', 'unrecorded'), { ...LEAST, limit: 0.98 }),
  ];
}

/** Each of the tokens is used once, and then once more: the difference is what its check costs. */
async function measureFirstUse({ measured, unused }: Bench): Promise<readonly Row[]> {
  const { url } = measured('on').service.service;
  const ask = async (token: string): Promise<number> => {
    const startedAt = performance.now();
    const answer = await fetch(`${url}/api/slots`, { headers: { authorization: `Bearer ${token}` } });
    await answer.text();
    if (!answer.ok) throw new Error(`A token was answered with ${answer.status}`);
    return performance.now() - startedAt;
  };
  const first: number[] = [];
  const second: number[] = [];
  for (const token of unused) {
    first.push(await ask(token));
    second.push(await ask(token));
  }
  const times = `${first.map((ms) => ms.toFixed(0)).join(', ')} ms; later ones ${median(second).toFixed(1)} ms`;
  process.stdout.write(`  first uses of ${unused.length} tokens: ${times}\n`);
  const limit = { limit: FIRST_USE_MS, unit: 'ms', digits: 0 };
  return [atMost('first use of a token, median', median(first), limit), atMost('  the slowest of them', Math.max(...first), limit)];
}
