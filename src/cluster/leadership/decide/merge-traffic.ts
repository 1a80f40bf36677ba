/** Merges the traffic of all replicas: requests of the live ones, and the latest times of all. Pure. */
import { sumTraffic, type TrafficFacts } from '../../../platform/decide/sum-traffic.ts';
import type { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { demandBegan, type ReportedActivity, type TrafficReport } from './traffic-report.ts';

export interface ReceivedReport {
  readonly report: TrafficReport;
  readonly seenAt: number;
  readonly fresh: boolean;
}

/** The latest times ever reported, on the same clock. They outlive the replicas and reports. */
interface TrafficHistory {
  readonly usedAt: ReadonlyMap<WorkloadId, number>;
  readonly askedAt: ReadonlyMap<SlotName, number>;
}

export const NO_HISTORY: TrafficHistory = { usedAt: new Map(), askedAt: new Map() };
/** Equal to the entries that a gateway keeps of its own traffic. */
const REMEMBERED = 4096;
/** Use only changes `idle` and `serving`. */
const USE_WITHIN_MS = 1000;

export function rememberReport(history: TrafficHistory, { report, seenAt }: Pick<ReceivedReport, 'report' | 'seenAt'>): TrafficHistory {
  const used = [...report.use].map(([workload, { agoMs }]) => [workload, seenAt - agoMs] as const);
  const asked = [...report.demand].map(([slot, { agoMs }]) => [slot, seenAt - agoMs] as const);
  return { usedAt: withLatest(history.usedAt, used), askedAt: withLatest(history.askedAt, asked) };
}

export function mergeTraffic(local: TrafficFacts, others: readonly ReceivedReport[], history: TrafficHistory): TrafficFacts {
  return sumTraffic([local, pastOf(history), ...others.filter(({ fresh }) => fresh).map(presentOf)]);
}

function pastOf({ usedAt, askedAt }: TrafficHistory): TrafficFacts {
  return {
    workloads: new Map([...usedAt].map(([workload, lastUsedAt]) => [workload, { inFlight: 0, lastUsedAt }])),
    demand: new Map([...askedAt].map(([slot, lastAskedAt]) => [slot, { waiting: 0, lastAskedAt }])),
  };
}

/** Only the counts: the times are in the history. */
function presentOf({ report: { use, demand, callers, results }, seenAt }: ReceivedReport): TrafficFacts {
  const workloads = [...use].flatMap(([key, { count, agoMs }]) => {
    const [ended, failed] = results.get(key) ?? [];
    return count === 0 && ended === undefined ? [] : [[key, { inFlight: count, ended, failed, lastUsedAt: seenAt - agoMs }] as const];
  });
  const slots = busy(demand).map(
    ([key, { count, agoMs }]) => [key, { waiting: count, lastAskedAt: seenAt - agoMs, caller: callers.get(key) }] as const,
  );
  return { workloads: new Map(workloads), demand: new Map(slots) };
}

const busy = <Key>(activity: ReadonlyMap<Key, ReportedActivity>) => [...activity].filter(([, { count }]) => count > 0);

/** Milliseconds until a pass is due: 0 for new demand, more for use, undefined for no relevant change. */
export function wakeFor(before: TrafficReport | undefined, next: TrafficReport): number | undefined {
  if (demandBegan(before, next)) return 0;
  const useChanged = next.use.entries().some(([workload, { count }]) => {
    const known = before?.use.get(workload);
    return known === undefined || count > 0 !== known.count > 0;
  });
  return useChanged ? USE_WITHIN_MS : undefined;
}

function withLatest<Key>(before: ReadonlyMap<Key, number>, entries: readonly (readonly [Key, number])[]): ReadonlyMap<Key, number> {
  const later = entries.filter(([key, at]) => at > (before.get(key) ?? Number.NEGATIVE_INFINITY));
  if (later.length === 0) return before;
  const next = new Map([...before, ...later]);
  if (next.size <= REMEMBERED) return next;
  return new Map([...next].toSorted(([, one], [, other]) => other - one).slice(0, REMEMBERED));
}
