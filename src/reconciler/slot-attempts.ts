/** The failures and starts of each slot since its last edit other than a change of its replicas: one part of the tracker. */
import type { Failure } from '../schema/words/failure.ts';
import type { SlotName, WorkloadId } from '../schema/words/names.ts';
import type { Attempt, AttemptKind, Attempts } from './decide/facts/facts.ts';
import { classifyEdit, type SlotEdit } from './decide/facts/slot-edit.ts';
import type { DesiredSlot, LogLine } from './ports.ts';

export interface FailedAttempt {
  readonly kind: AttemptKind;
  readonly failure: Failure;
  readonly workload?: WorkloadId;
  readonly restartedInPlace?: true;
}

export interface SlotAttempts {
  readonly all: ReadonlyMap<SlotName, Attempts>;
  /** Counts from zero after an edit, unless it only scaled the slot. Returns what changed since the last call. */
  followEdit(slot: Pick<DesiredSlot, 'name' | 'generation' | 'spec'>): SlotEdit;
  forget(slot: SlotName): void;
  /** Takes over what earlier controllers recorded of this generation, unless more is known already. */
  recall(slot: SlotName, failures: readonly Attempt[]): void;
  /** Forgets its failures and repairs. */
  clearFailures(slot: SlotName): void;
  started(slot: SlotName): void;
  /** Its runtime restarted a workload of it. */
  restartedInPlace(slot: SlotName): void;
  failed(slot: SlotName, attempt: FailedAttempt, now: number): void;
  /** A workload that somebody altered is being replaced, or was updated in place. */
  repaired(slot: SlotName, workload: WorkloadId, now: number): void;
  /** Adds log lines to the attempt of this workload that failed at `at`. */
  addLogTail(slot: SlotName, of: { readonly workload: WorkloadId; readonly at: number }, lines: readonly LogLine[]): void;
}

/** Enough to recognise a crash loop and to show what happened. */
const KEPT_FAILURES = 20;

export function createSlotAttempts(): SlotAttempts {
  const all = new Map<SlotName, Attempts>();
  const seen = new Map<SlotName, Pick<DesiredSlot, 'generation' | 'spec'>>();
  const change = (slot: SlotName, part: (before: Attempts) => Partial<Attempts>): void => {
    const before = all.get(slot);
    if (before !== undefined) all.set(slot, { ...before, ...part(before) });
  };
  return {
    all,
    followEdit({ name, generation, spec }) {
      const before = seen.get(name);
      if (before?.spec === spec && before.generation === generation) return 'unchanged';
      const edit = classifyEdit(before, { generation, spec });
      seen.set(name, { generation, spec });
      if (edit === 'unchanged') return edit;
      if (edit === 'edited') all.set(name, { generation, failures: [], repairs: undefined, starts: 0 });
      else change(name, () => ({ generation }));
      return edit;
    },
    recall: (slot, recorded) => change(slot, ({ failures }) => (failures.length >= recorded.length ? {} : { failures: recorded })),
    forget(slot) {
      all.delete(slot);
      seen.delete(slot);
    },
    clearFailures: (slot) => change(slot, () => ({ failures: [], repairs: undefined })),
    started: (slot) => change(slot, ({ starts }) => ({ starts: starts + 1 })),
    // A workload that was found running was started once, too.
    restartedInPlace: (slot) => change(slot, ({ starts }) => ({ starts: Math.max(starts, 1) + 1 })),
    failed(slot, attempt, now) {
      const failure: Attempt = { at: now, ...attempt };
      change(slot, ({ failures }) => ({ failures: [...failures, failure].slice(-KEPT_FAILURES) }));
    },
    repaired: (slot, workload, now) =>
      change(slot, ({ repairs }) => ({ repairs: { times: (repairs?.times ?? 0) + 1, lastAt: now, workload } })),
    addLogTail(slot, { workload, at }, lines) {
      const add = (attempt: Attempt): Attempt =>
        attempt.workload === workload && attempt.at === at ? { ...attempt, logTail: lines } : attempt;
      change(slot, ({ failures }) => ({ failures: failures.map(add) }));
    },
  };
}
