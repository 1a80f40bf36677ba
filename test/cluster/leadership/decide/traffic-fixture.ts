/** Short notation for traffic: `{ chat: [waiting, lastAskedAt] }` and `{ w1: [inFlight, lastUsedAt] }`; in reports, ages instead of times. */
import type { TrafficReport } from '../../../../src/cluster/leadership/decide/traffic-report.ts';
import type { TrafficFacts } from '../../../../src/platform/decide/sum-traffic.ts';
import { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';

export type Pairs = Readonly<Record<string, readonly [number, number]>>;

export function factsOf(demand: Pairs = {}, use: Pairs = {}): TrafficFacts {
  return {
    demand: new Map(Object.entries(demand).map(([slot, [waiting, lastAskedAt]]) => [SlotName.parse(slot), { waiting, lastAskedAt }])),
    workloads: new Map(Object.entries(use).map(([id, [inFlight, lastUsedAt]]) => [WorkloadId.parse(id), { inFlight, lastUsedAt }])),
  };
}

export function reportOf(
  demand: Pairs = {},
  use: Pairs = {},
  callers: Readonly<Record<string, string>> = {},
  results: Pairs = {},
): TrafficReport {
  return {
    callers: new Map(Object.entries(callers)),
    results: new Map(Object.entries(results).map(([id, result]) => [WorkloadId.parse(id), result])),
    demand: new Map(Object.entries(demand).map(([slot, [count, agoMs]]) => [SlotName.parse(slot), { count, agoMs }])),
    use: new Map(Object.entries(use).map(([id, [count, agoMs]]) => [WorkloadId.parse(id), { count, agoMs }])),
  };
}
