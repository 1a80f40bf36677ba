/**
 * Adds up what several gateways know of the same slots and workloads: replicas of a cluster, or processes of one
 * service. All times are of one clock. Pure.
 */
import type { Demand, Traffic, WorkloadActivity } from '../../reconciler/ports.ts';

export type TrafficFacts = ReturnType<Traffic['read']>;

export function sumTraffic(all: readonly TrafficFacts[]): TrafficFacts {
  return { workloads: sumOf(all, ({ workloads }) => workloads, addActivity), demand: sumOf(all, ({ demand }) => demand, addDemand) };
}

function sumOf<Key, Value>(
  all: readonly TrafficFacts[],
  entriesOf: (facts: TrafficFacts) => ReadonlyMap<Key, Value>,
  add: (one: Value, other: Value) => Value,
): ReadonlyMap<Key, Value> {
  const sums = new Map<Key, Value>();
  for (const facts of all) {
    for (const [key, value] of entriesOf(facts)) {
      const before = sums.get(key);
      sums.set(key, before === undefined ? value : add(before, value));
    }
  }
  return sums;
}

function addActivity(one: WorkloadActivity, other: WorkloadActivity): WorkloadActivity {
  return {
    inFlight: one.inFlight + other.inFlight,
    ended: sumKnown(one.ended, other.ended),
    failed: sumKnown(one.failed, other.failed),
    lastUsedAt: latest(one.lastUsedAt, other.lastUsedAt),
    lastHeardAt: latest(one.lastHeardAt, other.lastHeardAt),
  };
}

const sumKnown = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : one + other;

function addDemand(one: Demand, other: Demand): Demand {
  const [first, second] = (other.waitingSince ?? Infinity) < (one.waitingSince ?? Infinity) ? [other, one] : [one, other];
  return {
    waiting: one.waiting + other.waiting,
    waitingSince: oldest(one, other),
    caller: first.caller ?? second.caller,
    lastAskedAt: Math.max(one.lastAskedAt, other.lastAskedAt),
  };
}

/** Undefined if it is not known of one of them. */
function oldest(one: Demand, other: Demand): number | undefined {
  if (one.waiting === 0) return other.waitingSince;
  if (other.waiting === 0) return one.waitingSince;
  return one.waitingSince === undefined || other.waitingSince === undefined ? undefined : Math.min(one.waitingSince, other.waitingSince);
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}
