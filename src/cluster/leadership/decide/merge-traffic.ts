/** Merges the traffic of all replicas: the sums of what is in flight or waits now, over the live replicas, and the latest times, over all reports ever received. Pure. */
import { sumTraffic, type TrafficFacts } from '../../../platform/decide/sum-traffic.ts';
import type { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { demandBegan } from './report-traffic.ts';
import type { TrafficReport } from './traffic-annotation.ts';

export interface ReceivedReport {
  readonly report: TrafficReport;
  /** When it was first seen, in milliseconds of this replica's monotonic clock. Its ages count from there. */
  readonly seenAt: number;
  /** Whether the replica that wrote it is alive: only then do its counts matter. */
  readonly fresh: boolean;
}

/** The latest times ever reported, on the same clock. They remain when a replica ends, and when a report no longer contains them. */
export interface TrafficHistory {
  readonly usedAt: ReadonlyMap<WorkloadId, number>;
  readonly askedAt: ReadonlyMap<SlotName, number>;
}

export const NO_HISTORY: TrafficHistory = { usedAt: new Map(), askedAt: new Map() };
/** As many as a gateway keeps of its own traffic. */
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

/** Only what is in flight or waits: the times are in the history. */
function presentOf({ report: { use, demand }, seenAt }: ReceivedReport): TrafficFacts {
  return {
    workloads: new Map(
      [...use]
        .filter(([, { count }]) => count > 0)
        .map(([workload, { count, agoMs }]) => [workload, { inFlight: count, lastUsedAt: seenAt - agoMs }]),
    ),
    demand: new Map(
      [...demand]
        .filter(([, { count }]) => count > 0)
        .map(([slot, { count, agoMs }]) => [slot, { waiting: count, lastAskedAt: seenAt - agoMs }]),
    ),
  };
}

/** Returns within how many milliseconds a pass should run after a report changed: 0 for new demand, later for use, undefined if nothing relevant changed. */
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
