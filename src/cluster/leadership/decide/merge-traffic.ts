/** Merges the traffic of all replicas: the sums of what is in flight or waits now, over the live replicas, and the latest times, over all reports ever received. Pure. */
import type { Demand, WorkloadActivity } from '../../../reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../../schema/names.ts';
import { demandBegan, type TrafficFacts } from './report-traffic.ts';
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
  const workloads = new Map<WorkloadId, WorkloadActivity>(local.workloads);
  const demand = new Map<SlotName, Demand>(local.demand);
  for (const [workload, usedAt] of history.usedAt) {
    const own = workloads.get(workload);
    workloads.set(workload, { inFlight: own?.inFlight ?? 0, lastUsedAt: Math.max(own?.lastUsedAt ?? usedAt, usedAt) });
  }
  for (const [slot, askedAt] of history.askedAt) {
    const own = demand.get(slot);
    demand.set(slot, { waiting: own?.waiting ?? 0, lastAskedAt: Math.max(own?.lastAskedAt ?? askedAt, askedAt) });
  }
  for (const { report, fresh, seenAt } of others) {
    if (!fresh) continue;
    for (const [workload, { count }] of report.use) {
      const sum = workloads.get(workload);
      if (count > 0) workloads.set(workload, { inFlight: (sum?.inFlight ?? 0) + count, lastUsedAt: sum?.lastUsedAt ?? seenAt });
    }
    for (const [slot, { count }] of report.demand) {
      const sum = demand.get(slot);
      if (count > 0) demand.set(slot, { waiting: (sum?.waiting ?? 0) + count, lastAskedAt: sum?.lastAskedAt ?? seenAt });
    }
  }
  return { workloads, demand };
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
