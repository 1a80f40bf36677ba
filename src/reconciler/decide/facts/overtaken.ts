/**
 * Whether the facts that a pass decided on were overtaken while it was interrupted. A pass over many slots pauses between its parts, and meanwhile requests begin and end, and actions report
 * their results. For a slot that stays as it is, that makes no difference: what has happened wakes the loop for another pass. A slot that the pass changes must be changed because of what is
 * true now; otherwise a workload could be stopped that a request has just entered. Pure.
 */
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { Decision, Observed } from './facts.ts';

/** The facts that do not wait for an observation to change. */
export type PassingFacts = Pick<Observed, 'activity' | 'demand' | 'attempts' | 'histories' | 'running' | 'takenPorts'>;

/** Whether requests of a slot go elsewhere than before, or nowhere. What people see of a slot may be as old as a pass: the next one corrects it. */
export function isTreatedOtherwise(before: Decision | undefined, after: Decision): boolean {
  if (before === undefined) return after.targets.length > 0 || after.draining.length > 0;
  const { admission, targets, draining } = before;
  return !isSameValue([admission, targets, draining], [after.admission, after.targets, after.draining]);
}

/** `slots`: those that the pass changes. */
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
