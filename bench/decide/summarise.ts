/** What the runs of one proxy say together, whether that is valid, and how two proxies compare. Pure. */
import { median } from '../measure.ts';

/** One run of the load generator against one proxy. */
export interface Run {
  readonly requests: number;
  readonly failures: number;
  readonly requestsPerSecond: number;
  readonly medianUs: number;
  /** CPU seconds per request of the proxy; not a number where they are not measured. */
  readonly cpu: number;
  /** CPU time of the proxy as a share of one core; not a number where it is not measured. */
  readonly busy: number;
}

/** A proxy that had less of its core was waiting for something else: its throughput says nothing about itself. */
const LEAST_BUSY = 0.85;

/** `void`: a request failed, which is cheaper than a good answer, or nothing was answered. `waited`: the proxy had less than 85 % of its core. */
export type Validity = 'valid' | 'waited' | 'void';

export interface Summary {
  readonly name: string;
  readonly requestsPerSecond: number;
  /** CPU time of the proxy per request, in microseconds. Undefined where it is not measured. */
  readonly cpuUs: number | undefined;
  /** Share of one core. Undefined where it is not measured. */
  readonly busy: number | undefined;
  /** Of all runs together. */
  readonly failures: number;
  readonly validity: Validity;
}

/** Medians of the runs. `mayWait`: where the load has a limit of its own, so that waiting is no fault. */
export function summarise(name: string, runs: readonly Run[], { mayWait }: { readonly mayWait: boolean }): Summary {
  const failures = runs.reduce((sum, run) => sum + run.failures, 0);
  const busy = measured(median(runs.map((run) => run.busy)));
  const waited = !mayWait && busy !== undefined && busy < LEAST_BUSY;
  const cpu = measured(median(runs.map((run) => run.cpu)));
  return {
    name,
    requestsPerSecond: median(runs.map((run) => run.requestsPerSecond)),
    cpuUs: cpu === undefined ? undefined : cpu * 1e6,
    busy,
    failures,
    validity: failures > 0 || runs.every((run) => run.requests === 0) ? 'void' : waited ? 'waited' : 'valid',
  };
}

const measured = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

/** The median over rounds of the ratio within one round, because the speed of machines drifts. */
export function ratioOfRuns(mine: readonly Run[], other: readonly Run[], of: (run: Run) => number): number {
  return median(mine.flatMap((run, round) => other.slice(round, round + 1).map((against) => of(run) / of(against))));
}

/** Why a ratio of two proxies must not be judged; undefined if it may be. CPU times may be compared although one of them waited. */
export function doubtOf(compared: readonly Summary[], what: 'throughput' | 'cpu'): string | undefined {
  const failed = compared.find(({ validity }) => validity === 'void');
  if (failed !== undefined) return `void: through "${failed.name}", ${voidText(failed.failures)}`;
  const waiting = compared.find(({ validity }) => validity === 'waited');
  if (what === 'cpu' || waiting === undefined) return undefined;
  return `invalid: "${waiting.name}" had ${((waiting.busy ?? 0) * 100).toFixed(0)} % of its core`;
}

/** For the terminal. */
export function summaryLine({ name, requestsPerSecond, cpuUs, busy, failures, validity }: Summary): string {
  const own = cpuUs === undefined ? '' : `${cpuUs.toFixed(1)} µs of CPU each, ${((busy ?? 0) * 100).toFixed(0)} % of its core`;
  const verdict = { valid: '', waited: 'INVALID: it waited', void: `VOID: ${voidText(failures)}` }[validity];
  return [name.padEnd(21), `${requestsPerSecond.toFixed(0)}/s`.padStart(10), own.padEnd(42), verdict].join('  ').trimEnd();
}

export function voidText(failures: number): string {
  return failures === 0 ? 'nothing was answered' : `${failures} requests failed`;
}
