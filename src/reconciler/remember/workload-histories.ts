/** Histories of all workloads, a part of the tracker; `decide/facts/workload-history.ts` interprets observations. */
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import type { Origin } from '../decide/facts/actions.ts';
import {
  countUpdate,
  mergeProbe,
  mergeSeen,
  newHistory,
  type ProbeResult,
  type SeenWorkload,
  type TrackedHistory,
} from '../decide/facts/workload-history.ts';

/** A workload that disappeared without a stop action. */
export interface Vanished {
  readonly id: WorkloadId;
  readonly slot: SlotName;
}

export interface WorkloadHistories {
  readonly all: ReadonlyMap<WorkloadId, TrackedHistory>;
  /** Everything that was started before this call shows in the next observation. */
  beginObservation(): void;
  /** Merges an observation, forgets workloads that are gone, and returns those not expected to go. */
  observe(
    seen: readonly SeenWorkload[],
    originOf: (seen: SeenWorkload) => Origin | undefined,
    isStopping: (id: WorkloadId) => boolean,
    now: number,
  ): readonly Vanished[];
  /** Records since when these workloads are drained; of all others, that they are not, unless `isStopping`. */
  markDraining(draining: ReadonlySet<WorkloadId>, isStopping: (id: WorkloadId) => boolean, now: number): void;
  started(id: WorkloadId, slot: SlotName, origin: Origin | undefined, now: number): void;
  updatedInPlace(id: WorkloadId, generation: number, now: number): void;
  stopBegun(id: WorkloadId): void;
  stopFailed(id: WorkloadId, message: string, now: number): void;
  exitNoted(id: WorkloadId, exitId: string): void;
  probed(id: WorkloadId, result: ProbeResult, now: number): void;
}

export function createWorkloadHistories(): WorkloadHistories {
  const all = new Map<WorkloadId, TrackedHistory>();
  const change = (id: WorkloadId, part: (before: TrackedHistory) => Partial<TrackedHistory>): void => {
    const before = all.get(id);
    if (before !== undefined) all.set(id, { ...before, ...part(before) });
  };
  return {
    all,
    beginObservation() {
      for (const [id, { fresh }] of all) if (fresh) change(id, () => ({ fresh: false }));
    },
    observe(seen, originOf, isStopping, now) {
      const ids = new Set(seen.map(({ id }) => id));
      const vanished: Vanished[] = [];
      for (const [id, { slot, expectedToGo, fresh }] of all) {
        if (ids.has(id) || fresh) continue;
        if (!expectedToGo) vanished.push({ id, slot });
        all.delete(id);
      }
      for (const each of seen) {
        const merged = mergeSeen(all.get(each.id), each, originOf(each), now);
        all.set(each.id, merged.expectedToGo || !isStopping(each.id) ? merged : { ...merged, expectedToGo: true });
      }
      return vanished;
    },
    markDraining(draining, isStopping, now) {
      for (const [id, { drainingSince }] of all) {
        if (draining.has(id)) {
          if (drainingSince === undefined) change(id, () => ({ drainingSince: now }));
        } else if (drainingSince !== undefined && !isStopping(id)) change(id, () => ({ drainingSince: undefined }));
      }
    },
    started(id, slot, origin, now) {
      if (!all.has(id)) all.set(id, { ...newHistory(slot, origin, now), fresh: true });
    },
    updatedInPlace: (id, generation, now) => change(id, ({ updates }) => ({ updates: countUpdate(updates, generation, now) })),
    stopBegun: (id) => change(id, () => ({ expectedToGo: true })),
    stopFailed: (id, message, now) =>
      change(id, ({ stops }) => ({ stops: { failures: (stops?.failures ?? 0) + 1, lastAt: now, message }, expectedToGo: false })),
    exitNoted: (id, exitId) => change(id, () => ({ notedExit: exitId })),
    probed: (id, result, now) => change(id, ({ probe }) => ({ probe: mergeProbe(probe, result, now) })),
  };
}
