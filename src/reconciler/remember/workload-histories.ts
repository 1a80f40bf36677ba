/** Histories of all workloads, a part of the tracker; `decide/facts/workload-history.ts` interprets observations. */
import type { Endpoint } from '../../providers/provider.ts';
import type { Finding } from '../../schema/words/failure.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import type { Origin } from '../decide/facts/actions.ts';
import {
  mergeProbe,
  mergeSeen,
  newHistory,
  withExit,
  type ProbeResult,
  type SeenWorkload,
  type TrackedHistory,
} from '../decide/facts/workload-history.ts';

/** A workload that disappeared without a stop action. */
export interface Vanished {
  readonly id: WorkloadId;
  readonly slot: SlotName;
}

interface Slept {
  readonly name: 'sleep' | 'wake';
  readonly endpoints: readonly Endpoint[];
  readonly fault: Finding | undefined;
}

/** Returns a function that replaces parts of an entry, if there is one. */
export function changerOf<Key, Entry extends object>(all: Map<Key, Entry>) {
  return (key: Key, part: (before: Entry) => Partial<Entry>): void => {
    const before = all.get(key);
    if (before !== undefined) all.set(key, { ...before, ...part(before) });
  };
}

export function createWorkloadHistories() {
  const all = new Map<WorkloadId, TrackedHistory>();
  const change = changerOf(all);
  return {
    all,
    /** Everything that was started before this call shows in the next observation. */
    beginObservation(): void {
      for (const [id, { fresh }] of all) if (fresh) change(id, () => ({ fresh: false }));
    },
    /** Merges an observation, forgets workloads that are gone, and returns those not expected to go. */
    observe(
      seen: readonly SeenWorkload[],
      originOf: (seen: SeenWorkload) => Origin | undefined,
      stopping: ReadonlySet<WorkloadId>,
      now: number,
    ): readonly Vanished[] {
      const ids = new Set(seen.map(({ id }) => id));
      const vanished: Vanished[] = [];
      for (const [id, { slot, expectedToGo, fresh }] of all) {
        if (ids.has(id) || fresh) continue;
        if (!expectedToGo) vanished.push({ id, slot });
        all.delete(id);
      }
      for (const each of seen) {
        const merged = mergeSeen(all.get(each.id), each, originOf(each), now);
        all.set(each.id, merged.expectedToGo || !stopping.has(each.id) ? merged : { ...merged, expectedToGo: true });
      }
      return vanished;
    },
    /** Records since when these workloads are drained; of all others, that they are not, unless they are stopped. */
    markDraining(draining: ReadonlySet<WorkloadId>, stopping: ReadonlySet<WorkloadId>, now: number): void {
      for (const [id, { drainingSince }] of all) {
        if (draining.has(id)) {
          if (drainingSince === undefined) change(id, () => ({ drainingSince: now }));
        } else if (drainingSince !== undefined && !stopping.has(id)) change(id, () => ({ drainingSince: undefined }));
      }
    },
    started(id: WorkloadId, slot: SlotName, origin: Origin | undefined, now: number): void {
      // A pod may wait for its node or image first: only an observation shows that its start time counts.
      if (!all.has(id)) all.set(id, { ...newHistory(slot, origin, now), startCountsFrom: undefined, fresh: true });
    },
    updatedInPlace: (id: WorkloadId, generation: number, now: number) =>
      change(id, ({ updates: before }) => ({
        updates: { generation, times: before?.generation === generation ? before.times + 1 : 1, lastAt: now },
      })),
    stopBegun: (id: WorkloadId) => change(id, () => ({ expectedToGo: true })),
    stopFailed: (id: WorkloadId, message: string, now: number) =>
      change(id, ({ stops }) => ({ stops: { failures: (stops?.failures ?? 0) + 1, lastAt: now, message }, expectedToGo: false })),
    /** Its server was put to sleep or woken, or it failed to. */
    slept: (id: WorkloadId, { name, endpoints, fault }: Slept, now: number) =>
      change(id, ({ probe, sleeps: { times } = { times: 0 } }) => {
        if (fault !== undefined) return { sleeps: { times, lastAt: now, fault } };
        const asleep = name === 'sleep';
        const health = asleep ? ({ kind: 'asleep', message: 'The server sleeps' } as const) : ({ kind: 'passing' } as const);
        const known = mergeProbe(probe, { health, endpoints, failingEndpoints: asleep ? endpoints : [] }, now);
        return { probe: known, sleeps: asleep ? { times: times + 1, lastAt: now } : undefined };
      }),
    counted: (id: WorkloadId, counted: Omit<NonNullable<TrackedHistory['counted']>, 'at'>, now: number) =>
      change(id, () => ({ counted: { ...counted, at: now } })),
    exitNoted: (id: WorkloadId, exitId: string) => change(id, ({ notedExits }) => ({ notedExits: withExit(notedExits, exitId) })),
    probed: (id: WorkloadId, result: ProbeResult, now: number) => change(id, ({ probe }) => ({ probe: mergeProbe(probe, result, now) })),
  };
}
