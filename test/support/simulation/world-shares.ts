/** Traffic as the leader sees it: its own as it is now, and that of the others as they last published it. */
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { Clock, Demand, Traffic, Wake, WorkloadActivity } from '../../../src/reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import { listen } from './world-models.ts';
import type { WorldTraffic } from './world-traffic.ts';

/** How often the use of workloads is published; waiting requests are published at once. */
const PUBLISH_EVERY_MS = 5000;

export interface Shares {
  readonly others: () => readonly WorldTraffic[];
  readonly leadership: NonNullable<LoopDeps['leadership']>;
  readonly clock: Clock;
  readonly demandWakes: Set<Wake>;
}

export function shareTraffic(own: WorldTraffic, { others, leadership, clock, demandWakes }: Shares): Traffic {
  let published: { readonly at: number; readonly uses: readonly ReadonlyMap<WorkloadId, WorkloadActivity>[] } | undefined;
  return {
    read() {
      const mine = own.read();
      if (!leadership.leads()) return mine;
      const theirs = others().map((traffic) => traffic.read());
      if (published === undefined || clock.now() - published.at >= PUBLISH_EVERY_MS) {
        published = { at: clock.now(), uses: theirs.map(({ workloads }) => workloads) };
      }
      return { workloads: addUses([mine.workloads, ...published.uses]), demand: addDemands([mine, ...theirs].map(({ demand }) => demand)) };
    },
    abort: (workload) => own.abort(workload),
    changes(wake, signal) {
      own.changes(wake, signal);
      listen(demandWakes, wake, signal);
      own.changes((withinMs) => {
        if (withinMs === 0) for (const each of demandWakes) if (each !== wake) each(0);
      }, signal);
    },
  };
}

function addUses(all: readonly ReadonlyMap<WorkloadId, WorkloadActivity>[]): ReadonlyMap<WorkloadId, WorkloadActivity> {
  const sum = new Map<WorkloadId, WorkloadActivity>();
  for (const each of all) {
    for (const [id, { inFlight, lastUsedAt }] of each) {
      const before = sum.get(id);
      const times = [before?.lastUsedAt, lastUsedAt].filter((at) => at !== undefined);
      sum.set(id, { inFlight: (before?.inFlight ?? 0) + inFlight, lastUsedAt: times.length === 0 ? undefined : Math.max(...times) });
    }
  }
  return sum;
}

function addDemands(all: readonly ReadonlyMap<SlotName, Demand>[]): ReadonlyMap<SlotName, Demand> {
  const sum = new Map<SlotName, Demand>();
  for (const each of all) {
    for (const [slot, { waiting, lastAskedAt }] of each) {
      const before = sum.get(slot);
      sum.set(slot, { waiting: (before?.waiting ?? 0) + waiting, lastAskedAt: Math.max(before?.lastAskedAt ?? 0, lastAskedAt) });
    }
  }
  return sum;
}
