/**
 * Failures that outlive a controller: recorded in the status of their slot, and read back by the next controller. Only those that count towards a crash loop
 * are recorded; whatever else fails, one attempt shows again. Pure.
 */
import type { RecordedFailures } from '../../../schema/failure-records.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { CRASH_KINDS, type RecordedFailure } from '../../../schema/status/slot-status.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Attempt } from './facts.ts';
import { hashUnscaled } from './slot-edit.ts';

/** Twice as many as make a crash loop. */
const MOST_RECORDED = 10;
/** Statuses are read by people, too. */
const LONGEST_MESSAGE = 300;

export interface Recorded {
  readonly attempt: Attempt;
  readonly failure: RecordedFailure;
}

/** `before`: what was recorded of the same slot last, whose times are kept. `wallNow`: Unix milliseconds. */
export function recordFailures(failures: readonly Attempt[], before: readonly Recorded[], wallNow: number): readonly Recorded[] {
  const own = before.filter(({ attempt }) => attempt.recordedAt === undefined);
  const times = new Map(own.map(({ attempt, failure }) => [attempt.at, failure.at]));
  const counted = failures.flatMap((attempt): readonly Recorded[] => {
    const kind = CRASH_KINDS.find((each) => each === attempt.kind);
    const { reason, message } = attempt.failure;
    const at = attempt.recordedAt ?? times.get(attempt.at) ?? wallNow;
    return kind === undefined ? [] : [{ attempt, failure: { at, kind, reason, message: message.slice(0, LONGEST_MESSAGE) } }];
  });
  return counted.slice(-MOST_RECORDED);
}

/** The failures of each slot that count still: of its present generation, or of the same spec with another number of replicas. On a clock that shows `now` when it is `wallNow`. */
export function recallFailures(
  records: ReadonlyMap<SlotName, RecordedFailures>,
  slots: ReadonlyMap<SlotName, Pick<DesiredSlot, 'generation' | 'spec'>>,
  { now, wallNow }: { readonly now: number; readonly wallNow: number },
): ReadonlyMap<SlotName, readonly Attempt[]> {
  const recalled = new Map<SlotName, readonly Attempt[]>();
  for (const [name, { observedGeneration, failedSpec, failures = [] }] of records) {
    const slot = slots.get(name);
    if (failures.length === 0 || slot === undefined) continue;
    if (slot.generation !== observedGeneration && failedSpec !== hashUnscaled(slot.spec)) continue;
    // A failure in the future means that the wall clock was set back since.
    const attempts = failures.map(({ at, kind, reason, message }): Attempt => {
      return { at: now - Math.max(0, wallNow - at), recordedAt: at, kind, failure: { kind: 'retry', reason, message } };
    });
    recalled.set(
      name,
      attempts.toSorted((a, b) => a.at - b.at),
    );
  }
  return recalled;
}
