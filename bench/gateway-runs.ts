/** Runs of the load against all proxies of one start, and what the runs of all starts say together. */
import { alternate } from './alternate.ts';
import type { ResultTable } from './decide/result.ts';
import { doubtOf, ratioOfRuns, summarise, summaryLine, type Run } from './decide/summarise.ts';
import { FIRST_TOKEN_ROUNDS, measureFirstToken } from './first-token.ts';
import { runOnce, SHORT, type GatewayBed, type Load, type Measured } from './gateway-bed.ts';
import { driveAndCount, writeScript } from './load.ts';
import { atMost, median, note, type Pace, type Row } from './measure.ts';

/** Only streams that end within a run are counted: with more connections they take longer, and runs do too. */
const MANY = 100;
/** Of the load itself, before each run: a process that had nothing to do for a while has given back memory and compiled code. */
const WARM_SECONDS = 1;

/** By the name of the proxy. */
export type Runs = ReadonlyMap<string, readonly Run[]>;

export async function runLoad({ directory }: GatewayBed, load: Load, proxies: ReadonlyMap<string, Measured>, pace: Pace): Promise<Runs> {
  const seconds = load.connections > MANY ? 2 * pace.seconds : pace.seconds;
  return alternate(proxies, pace.rounds * (load.moreRounds ?? 1), async (proxy) => {
    const warm = await runOnce(directory, proxy, load, WARM_SECONDS);
    const run = await runOnce(directory, proxy, load, seconds);
    return { ...run, failures: run.failures + warm.failures };
  });
}

/** Microseconds of each run, by name. */
export type Times = ReadonlyMap<string, readonly { readonly us: number; readonly failures: number }[]>;

/** The time of one request at a time: until the whole of a short answer, and until the first chunk of a stream. */
export async function timeRequests(
  { directory, proxies, streams, bare }: GatewayBed,
  pace: Pace,
): Promise<Record<'whole' | 'first', Times>> {
  const script = await writeScript(directory, { bytes: SHORT.bytes, model: 'primary' });
  const compared = [...proxies].filter(([name]) => name === 'nginx' || name === 'real service');
  const whole = await alternate(new Map([['upstream alone', bare], ...compared]), pace.rounds, async (server) => {
    const { medianUs, failures } = await driveAndCount(server, { script, connections: 1, seconds: pace.seconds });
    return { us: medianUs, failures };
  });
  const first = await alternate(streams, pace.rounds * FIRST_TOKEN_ROUNDS, async ({ port }) => {
    const { ms, failures } = await measureFirstToken(port, pace.seconds / FIRST_TOKEN_ROUNDS);
    return { us: ms * 1000, failures };
  });
  return { whole, first };
}

/** Puts the runs of several starts one after the other. */
export function join<T>(starts: readonly ReadonlyMap<string, readonly T[]>[]): ReadonlyMap<string, readonly T[]> {
  const names = new Set(starts.flatMap((start) => [...start.keys()]));
  return new Map([...names].map((name) => [name, starts.flatMap((start) => start.get(name) ?? [])]));
}

type Judged = readonly [
  value: number | string,
  limit: { readonly limit: number; readonly unit: string; readonly doubt?: string | undefined },
];

export interface Comparison {
  readonly table: ResultTable;
  /** `onTwoCores`: requests/s of `other` on two cores against those of `mine` on one, computed from CPU per request. */
  compare(mine: string, other: string): Record<'throughput' | 'cpu' | 'onTwoCores', (limit: number) => Judged>;
}

/** Prints the table, too. `mayWait`: a proxy that waits for the upstream is as it should be. */
export function compareRuns(runs: Runs, title: string, { mayWait }: { readonly mayWait: boolean }): Comparison {
  const summaries = new Map([...runs].map(([name, of]) => [name, summarise(name, of, { mayWait })] as const));
  process.stdout.write(`  ${title}\n`);
  for (const summary of summaries.values()) process.stdout.write(`    ${summaryLine(summary)}\n`);
  const against = ['upstream alone', 'nginx', 'bare forwarder', 'real service'].find((name) => summaries.has(name)) ?? '';
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

/** Differences are taken within each round, in which the machine was equally fast for all. */
export function addedRows(what: string, times: Times): readonly Row[] {
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
