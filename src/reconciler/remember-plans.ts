/**
 * Remembers the plans of slots at rest. Of thousands of slots nearly all are as they were in the last pass; with 2,000 of them, planning and publishing
 * each one again takes most of a pass. A plan is returned again only while everything it depends on is the same by value, and time changes nothing.
 */
import type { SlotName } from '../schema/names.ts';
import { isSameExcept } from '../schema/same-value.ts';
import { planSlot, type SlotPlan, type SlotQuestion } from './decide/plan-slot.ts';
import { forgetOthers } from './memo.ts';

export interface RememberedPlans {
  readonly planSlot: typeof planSlot;
  /** Forgets slots that are gone. */
  keepOnly(slots: ReadonlyMap<SlotName, unknown>): void;
}

export function rememberPlans(): RememberedPlans {
  const remembered = new Map<SlotName, { question: SlotQuestion; readonly plan: SlotPlan }>();
  return {
    planSlot(question, allocation) {
      const { now, slot } = question.view;
      const last = remembered.get(slot.name);
      if (last !== undefined && now < last.plan.validUntil && isSameQuestion(last.question, question)) {
        // The next question is most likely made of the same objects, which are compared faster.
        last.question = question;
        return last.plan;
      }
      const plan = planSlot(question, allocation);
      if (plan.atRest) remembered.set(slot.name, { question, plan });
      else remembered.delete(slot.name);
      return plan;
    },
    keepOnly: (slots) => forgetOthers(remembered, slots),
  };
}

/** Everything counts except the time: `validUntil` says until when that does not matter. */
function isSameQuestion(before: SlotQuestion, question: SlotQuestion): boolean {
  return isSameExcept(before, question, 'view') && isSameExcept(before.view, question.view, 'now');
}
