/** Traffic in few words: `{ chat: [waiting, lastAskedAt] }` and `{ w1: [inFlight, lastUsedAt] }`. */
import type { TrafficReport } from '../../../../src/cluster/leadership/decide/read-traffic.ts';
import type { TrafficFacts } from '../../../../src/cluster/leadership/decide/report-traffic.ts';
import { SlotName, WorkloadId } from '../../../../src/schema/names.ts';

export type Pairs = Readonly<Record<string, readonly [number, number]>>;

export function factsOf(demand: Pairs = {}, use: Pairs = {}): TrafficFacts {
  return {
    demand: new Map(Object.entries(demand).map(([slot, [waiting, lastAskedAt]]) => [SlotName.parse(slot), { waiting, lastAskedAt }])),
    workloads: new Map(Object.entries(use).map(([id, [inFlight, lastUsedAt]]) => [WorkloadId.parse(id), { inFlight, lastUsedAt }])),
  };
}

export function reportOf(demand: Pairs = {}, use: Pairs = {}): TrafficReport {
  return {
    demand: new Map(Object.entries(demand).map(([slot, [waiting, askedAgoMs]]) => [SlotName.parse(slot), { waiting, askedAgoMs }])),
    use: new Map(Object.entries(use).map(([id, [inFlight, usedAgoMs]]) => [WorkloadId.parse(id), { inFlight, usedAgoMs }])),
  };
}
