/** One picture of the traffic of all replicas: what is in flight and waits, summed over those that are there; what happened last, over all that ever told. Pure. */
import type { Demand, WorkloadActivity } from '../../../reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../../schema/names.ts';
import type { TrafficReport } from './read-traffic.ts';
import type { TrafficFacts } from './report-traffic.ts';

/** A report as it was received here. */
export interface ReceivedReport {
  readonly report: TrafficReport;
  /** Unix milliseconds by this replica's clock, when it was first seen: its ages count from there. */
  readonly seenAt: number;
  /** Whether the replica that wrote it is there: what it says of the present counts. */
  readonly fresh: boolean;
}

/** What happened last, for good: a replica that has ended, and a report that no longer tells, take nothing away. Unix milliseconds. */
export interface TrafficMemory {
  readonly usedAt: ReadonlyMap<WorkloadId, number>;
  readonly askedAt: ReadonlyMap<SlotName, number>;
}

export const NOTHING_REMEMBERED: TrafficMemory = { usedAt: new Map(), askedAt: new Map() };
/** As many as a gateway remembers of its own. */
const REMEMBERED = 4096;

export function rememberReport(memory: TrafficMemory, { report, seenAt }: Pick<ReceivedReport, 'report' | 'seenAt'>): TrafficMemory {
  const used = [...report.use].map(([workload, { usedAgoMs }]) => [workload, seenAt - usedAgoMs] as const);
  const asked = [...report.demand].map(([slot, { askedAgoMs }]) => [slot, seenAt - askedAgoMs] as const);
  return { usedAt: withLatest(memory.usedAt, used), askedAt: withLatest(memory.askedAt, asked) };
}

export function mergeTraffic(local: TrafficFacts, others: readonly ReceivedReport[], memory: TrafficMemory): TrafficFacts {
  const workloads = new Map<WorkloadId, WorkloadActivity>(local.workloads);
  const demand = new Map<SlotName, Demand>(local.demand);
  for (const [workload, usedAt] of memory.usedAt) {
    const own = workloads.get(workload);
    workloads.set(workload, { inFlight: own?.inFlight ?? 0, lastUsedAt: Math.max(own?.lastUsedAt ?? usedAt, usedAt) });
  }
  for (const [slot, askedAt] of memory.askedAt) {
    const own = demand.get(slot);
    demand.set(slot, { waiting: own?.waiting ?? 0, lastAskedAt: Math.max(own?.lastAskedAt ?? askedAt, askedAt) });
  }
  for (const { report, fresh, seenAt } of others) {
    if (!fresh) continue;
    for (const [workload, { inFlight }] of report.use) {
      const sum = workloads.get(workload);
      if (inFlight > 0) workloads.set(workload, { inFlight: (sum?.inFlight ?? 0) + inFlight, lastUsedAt: sum?.lastUsedAt ?? seenAt });
    }
    for (const [slot, { waiting }] of report.demand) {
      const sum = demand.get(slot);
      if (waiting > 0) demand.set(slot, { waiting: (sum?.waiting ?? 0) + waiting, lastAskedAt: sum?.lastAskedAt ?? seenAt });
    }
  }
  return { workloads, demand };
}

/** How soon a pass should look, given a replica's report before and now: at once for demand, in a while for use; undefined: nothing that matters changed. */
export function wakeFor(before: TrafficReport | undefined, next: TrafficReport, useWithinMs: number): number | undefined {
  for (const [slot, { waiting }] of next.demand) if (waiting > 0 && (before?.demand.get(slot)?.waiting ?? 0) === 0) return 0;
  for (const [workload, { inFlight }] of next.use) {
    if (inFlight > 0 !== (before?.use.get(workload)?.inFlight ?? 0) > 0 || before?.use.has(workload) !== true) return useWithinMs;
  }
  return undefined;
}

function withLatest<Key>(before: ReadonlyMap<Key, number>, entries: readonly (readonly [Key, number])[]): ReadonlyMap<Key, number> {
  const news = entries.filter(([key, at]) => at > (before.get(key) ?? Number.NEGATIVE_INFINITY));
  if (news.length === 0) return before;
  const next = new Map(before);
  for (const [key, at] of news) next.set(key, at);
  if (next.size <= REMEMBERED) return next;
  return new Map([...next].toSorted(([, one], [, other]) => other - one).slice(0, REMEMBERED));
}
