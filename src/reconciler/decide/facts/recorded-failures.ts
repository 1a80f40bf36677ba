/**
 * Failures that outlive a controller: recorded in the status of their slot, and read back by the next controller. Only
 * those that count towards a crash loop are recorded; whatever else fails, one attempt shows again. Pure.
 */
import { CRASH_KINDS, type RecordedFailures, type RecordedFailure } from '../../../schema/status/slot-status.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Attempt, Decision, Observed } from './facts.ts';
import { hashUnscaled, type Declared } from './slot-edit.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';

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
  const times = new Map(own.map(({ attempt, failure }) => [identify(attempt), failure.at]));
  const counted = failures.flatMap((attempt): readonly Recorded[] => {
    const kind = CRASH_KINDS.find((each) => each === attempt.kind);
    const { reason, message } = attempt.failure;
    const at = attempt.recordedAt ?? times.get(identify(attempt)) ?? wallNow;
    return kind === undefined ? [] : [{ attempt, failure: { at, kind, reason, message: message.slice(0, LONGEST_MESSAGE) } }];
  });
  return counted.slice(-MOST_RECORDED);
}

/** A slot may fail several times at one moment. */
function identify({ at, kind, workload, failure }: Attempt): string {
  return [at, kind, workload, failure.message].join(' ');
}

/** Failures that still count: of the same object with the same spec, at any scale. Times on the clock of `now`. */
export function recallFailures(
  records: ReadonlyMap<SlotName, RecordedFailures>,
  slots: ReadonlyMap<SlotName, Declared>,
  { now, wallNow }: { readonly now: number; readonly wallNow: number },
): ReadonlyMap<SlotName, readonly Attempt[]> {
  const recalled = new Map<SlotName, readonly Attempt[]>();
  for (const [name, { observedGeneration, failedSpec, failures = [] }] of records) {
    const slot = slots.get(name);
    if (failures.length === 0 || slot === undefined) continue;
    // Where a record lacks the hash, its generation has to do.
    const counts = failedSpec === undefined ? slot.generation === observedGeneration : failedSpec === hashUnscaled(slot.spec, slot.uid);
    if (!counts) continue;
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

/** The facts that do not wait for an observation to change. */
export type PassingFacts = Pick<Observed, 'activity' | 'demand' | 'attempts' | 'histories' | 'running' | 'takenPorts'>;

/** Whether requests go elsewhere than before, or nowhere. Status may be one pass old: the next pass corrects it. */
export function isTreatedOtherwise(before: Decision | undefined, after: Decision): boolean {
  if (before === undefined) return after.targets.length > 0 || after.draining.length > 0;
  const { admission, targets, draining } = before;
  return !isSameValue([admission, targets, draining], [after.admission, after.targets, after.draining]);
}

/**
 * Whether the facts that a pass decided on were overtaken while it was interrupted. A pass over many slots pauses
 * between its parts, and meanwhile requests begin and end, and actions report their results. For a slot that stays as
 * it is, that makes no difference: what has happened wakes the loop for another pass. A slot that the pass changes must
 * be changed because of what is true now; otherwise a workload could be stopped that a request has just entered.
 * `slots`: those that the pass changes.
 */
export function isOvertaken(slots: ReadonlySet<SlotName>, before: PassingFacts & Pick<Observed, 'runtime'>, now: PassingFacts): boolean {
  if (slots.size === 0) return false;
  if (before.takenPorts.size !== now.takenPorts.size) return true;
  for (const name of slots) {
    if (before.attempts.get(name) !== now.attempts.get(name)) return true;
    if (!isSameValue(before.demand.get(name), now.demand.get(name))) return true;
  }
  for (const [key, each] of before.running) if (slots.has(each.action.slot) && now.running.get(key) !== each) return true;
  const workloads = before.runtime.kind === 'reachable' ? before.runtime.facts.workloads : [];
  return workloads.some(
    ({ id, slot }) =>
      slots.has(slot) &&
      (before.histories.get(id) !== now.histories.get(id) || !isSameValue(before.activity.get(id), now.activity.get(id))),
  );
}
