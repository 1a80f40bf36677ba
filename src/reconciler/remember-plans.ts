/**
 * Remembers the plans of slots at rest. Of thousands of slots nearly all are as they were in the last pass; with 2,000 of them, planning and publishing
 * each one again takes most of a pass. A plan is returned again only while everything it depends on is the same by value, and time changes nothing.
 */
import type { SlotName } from '../schema/names.ts';
import { planSlot, type SlotPlan, type SlotQuestion } from './decide/plan-slot.ts';
import { forgetOthers, hasSameInputs } from './memo.ts';

export interface RememberedPlans {
  readonly planSlot: typeof planSlot;
  /** Forgets slots that are gone. */
  keepOnly(slots: ReadonlyMap<SlotName, unknown>): void;
}

export function rememberPlans(): RememberedPlans {
  const remembered = new Map<SlotName, { inputs: readonly unknown[]; readonly plan: SlotPlan }>();
  return {
    planSlot(question, allocation) {
      const { now, slot } = question.view;
      const inputs = inputsOf(question);
      const last = remembered.get(slot.name);
      if (last !== undefined && now < last.plan.validUntil && hasSameInputs(last, inputs)) return last.plan;
      const plan = planSlot(question, allocation);
      if (plan.atRest) remembered.set(slot.name, { inputs, plan });
      else remembered.delete(slot.name);
      return plan;
    },
    keepOnly: (slots) => forgetOthers(remembered, slots),
  };
}

/** Every field of the question, of its view and of the view's workloads, but for the time: `validUntil` says until when it does not matter. */
function inputsOf({ view, ...rest }: SlotQuestion): readonly unknown[] {
  const { now: _now, workloads, ...fields } = view;
  return [...Object.values(rest), ...Object.values(fields), ...workloads.flatMap((workload) => Object.values(workload))];
}
