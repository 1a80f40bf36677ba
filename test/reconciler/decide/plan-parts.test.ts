import { expect, test } from '@jest/globals';
import { inOneGo, PIECES_PER_PART } from '../../../src/platform/decide/parse-json.ts';
import { plan, planInParts, PLAN_STEPS, type PlanSteps } from '../../../src/reconciler/decide/plan.ts';
import { createReporter } from '../../../src/reconciler/report.ts';
import { slotName } from '../../support/simulation/world.ts';
import { factsOf, NOW } from './plan-fixture.ts';

const SLOTS = 1000;
const one = factsOf({ workloads: [], slot: { load: 'on-demand' } });
const [slot] = one.desired.slots.values();
if (slot === undefined) throw new Error('There is no slot');
const names = Array.from({ length: SLOTS }, (_, index) => slotName(`slot-${index}`));
const desired = { ...one.desired, slots: new Map(names.map((name) => [name, { ...slot, name }])) };
const { observed } = one;

test('a plan of a thousand new slots is in parts that consider or plan a few slots each', () => {
  let slots = 0;
  const steps: PlanSteps = {
    ...PLAN_STEPS,
    consider(...args) {
      slots += 1;
      return PLAN_STEPS.consider(...args);
    },
    planSlot(...args) {
      slots += 1;
      return PLAN_STEPS.planSlot(...args);
    },
  };
  const ofParts: number[] = [];
  for (const part of planInParts(desired, observed, NOW, steps)) {
    ofParts.push(slots);
    slots = part ?? 0;
  }
  expect(Math.max(...ofParts, slots)).toBe(PIECES_PER_PART);
  expect(ofParts.reduce((sum, count) => sum + count, slots)).toBe(2 * SLOTS);
});

test('what is published of a thousand new slots is prepared in parts of a few slots each', () => {
  const made = plan(desired, observed, NOW);
  const reporter = createReporter(0);
  const parts = [...reporter.prepare(made, desired, observed, NOW)];
  expect(parts.length).toBeGreaterThanOrEqual(SLOTS / PIECES_PER_PART);
  expect(reporter.published.size).toBe(0);
  expect(reporter.publish(inOneGo(reporter.prepare(made, desired, observed, NOW))).slots.size).toBe(SLOTS);
});
