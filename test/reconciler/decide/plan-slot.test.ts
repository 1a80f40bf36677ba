import { describe, expect, test } from '@jest/globals';
import type { MemoryVerdict } from '../../../src/reconciler/decide/facts/memory-pools.ts';
import { plan, PLAN_STEPS } from '../../../src/reconciler/decide/plan.ts';
import { withVerdict, type SlotPlan } from '../../../src/reconciler/decide/plan-slot.ts';
import { factsOf, NOW } from './plan-fixture.ts';

/** The plan of a slot whose server runs in a limited memory. */
function planOfOne(): { readonly made: SlotPlan; readonly verdict: MemoryVerdict } {
  const { desired, observed } = factsOf({ workloads: [{ id: 'w1' }], budgetBytes: 10_000_000 });
  let made: SlotPlan | undefined;
  plan(desired, observed, NOW, { ...PLAN_STEPS, planSlot: (...args) => (made = PLAN_STEPS.planSlot(...args)) });
  const verdict = made?.decision.memory;
  if (made === undefined || verdict === undefined) throw new Error('Nothing was planned');
  return { made, verdict };
}

describe('the plan of a slot at rest, after memory was shared out again,', () => {
  const { made, verdict } = planOfOne();
  const refused: MemoryVerdict = { ...verdict, admitted: false };

  test('is the same object where the slot gets the same', () => {
    expect(withVerdict(made, { ...verdict })).toBe(made);
  });

  test('only shows the new figures where the memory is in the same place', () => {
    const memory = { ...verdict, budgetBytes: 20_000_000 };
    expect(withVerdict(made, memory)).toEqual({ ...made, decision: { ...made.decision, memory } });
  });

  test.each([
    ['is no longer admitted', verdict, refused],
    ['is admitted at last', refused, verdict],
    ['is refused for another reason', refused, { ...refused, mayWait: !refused.mayWait }],
    ['needs memory for the first time', undefined, verdict],
    ['needs none any more', verdict, undefined],
    ['gets memory in another place', verdict, { ...verdict, placement: { ...verdict.placement, 'gpu:0': 1 } }],
  ] as const)('is made again where the slot %s', (_what, before, after) => {
    expect(withVerdict({ ...made, decision: { ...made.decision, memory: before } }, after)).toBeUndefined();
  });
});

test('looks again soon while a wanted slot lacks memory that other programs use, which tell nobody when they end', () => {
  const wakeOf = (availableBytes: number, slot: Parameters<typeof factsOf>[0]['slot'] = {}): number | undefined => {
    const { desired, observed } = factsOf({ slot, budgetBytes: 1_000_000_000, modelBytes: 400_000_000 });
    const host = { memoryTotalBytes: 1_000_000_000, memoryAvailableBytes: availableBytes };
    return plan(desired, { ...observed, host }, NOW).wakeAt;
  };
  expect(wakeOf(100_000_000)).toBe(NOW + 5000);
  expect(wakeOf(1_000_000_000)).toBeUndefined();
  // It needs no memory yet.
  expect(wakeOf(100_000_000, { load: 'on-demand' })).toBeUndefined();
});
