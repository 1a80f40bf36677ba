/**
 * Repair of workloads altered from outside: updated in place if the runtime can, replaced otherwise.
 *
 *     drift = "repair"             repaired without end, with the back-off of failures
 *     drift = "warn", "ignore"     left as it is
 *     it keeps the slot from       stalled at once where it is left as it is
 *     answering
 *     altered after each repair,   stalled once the back-off has reached its longest delay, because then a user must
 *     or update by an edit         stop the cause; it is still repaired
 *
 * Pure.
 */
import { delayAfter, LONGEST_DELAY_MS } from './backoff.ts';
import { MODEL_REPLACED } from '../facts/drift.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** When an altered workload is repaired next, in monotonic milliseconds; undefined where it is not repaired. */
export function nextRepairAt({ spec, repairs, now }: SlotView): number | undefined {
  if (spec.lifecycle.drift !== 'repair') return undefined;
  return repairs === undefined ? now : repairs.lastAt + delayAfter(repairs.times);
}

/** Whether an altered workload is repaired now, and not only reported. */
export function repairsDrift(view: SlotView): boolean {
  const at = nextRepairAt(view);
  return at !== undefined && at <= view.now;
}

/** What was altered, and how often that was repaired. The message stays the same until the next repair. */
export function describeAltered({ drift }: Pick<WorkloadView, 'drift'>, view: SlotView): Finding {
  if (drift.every((text) => text === MODEL_REPLACED))
    return { reason: 'ModelChanged', message: `The files of the model were replaced, and the server has the old ones${repairsText(view)}` };
  return { reason: 'WorkloadAltered', message: `The workload was altered from outside: ${drift.join('; ')}${repairsText(view)}` };
}

/** Why repairs do not help, or are needed and not made; undefined if no action is needed. */
export function findUnrepairable(
  view: SlotView,
  { serving, starting }: { readonly serving: WorkloadView | undefined; readonly starting: WorkloadView | undefined },
): Finding | undefined {
  const { repairs, spec, slot } = view;
  const { updates } = [starting, serving].find((workload) => workload?.behind === true)?.known ?? {};
  if (updates?.generation === slot.generation && delayAfter(updates.times) >= LONGEST_DELAY_MS) {
    const message = `An edit was applied ${updates.times} times, and something undoes it each time; stop it`;
    return { reason: 'WorkloadAltered', message };
  }
  const altered = [starting, serving].find((workload) => workload?.standing === 'altered');
  if (spec.lifecycle.drift !== 'repair') {
    if (serving !== undefined || altered === undefined || !isScaledToZero(altered)) return undefined;
    const message = `${describeAltered(altered, view).message}; undo the change, or set "drift" to "repair"`;
    return { reason: 'WorkloadAltered', message };
  }
  if (repairs === undefined || delayAfter(repairs.times) < LONGEST_DELAY_MS) return undefined;
  if (altered === undefined && (serving !== undefined || starting === undefined)) return undefined;
  const what = altered?.drift.join('; ') ?? 'repairs do not last';
  const message = `The workload is altered from outside again and again: ${what}${repairsText(view)}; stop the cause`;
  return { reason: 'WorkloadAltered', message };
}

function repairsText({ repairs, spec }: SlotView): string {
  if (repairs === undefined || spec.lifecycle.drift !== 'repair') return '';
  const pause = delayAfter(repairs.times) / 1000;
  return `; it was repaired ${repairs.times === 1 ? 'once' : `${repairs.times} times`}, and the next repair waits ${pause} s after the last one`;
}

/** It has no process, waits for nothing, and nothing will ever start one. */
function isScaledToZero({ fact }: WorkloadView): boolean {
  return fact.phase === 'created' && fact.replicas?.present === 0 && fact.waitingReason === undefined;
}
