import { describe, expect, test } from '@jest/globals';
import type { Observed, Plan } from '../../src/reconciler/decide/facts/facts.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { rememberTemplating } from '../../src/reconciler/desire.ts';
import { rememberPlans } from '../../src/reconciler/remember-plans.ts';
import { factsOf, NOW, PRIMARY } from './decide/plan-fixture.ts';

describe('a remembered plan', () => {
  const rest = factsOf({ workloads: [{ id: 'w1' }] });
  const plans = rememberPlans();
  const desired = { ...rest.desired, ...rememberTemplating(rest.desired) };
  const decide = (observed: Observed, now: number): Plan => plan(desired, observed, now, plans.planSlot);
  const decision = decide(rest.observed, NOW).decisions.get(PRIMARY);
  if (decision === undefined) throw new Error('Nothing was decided');
  const published = new Map([[PRIMARY, { decision, since: NOW, conditions: [] }]]);
  const observed = { ...rest.observed, published };
  const remembered = decide(observed, NOW).decisions.get(PRIMARY);

  test('is the same object while nothing changes by value, until it is due', () => {
    expect(decide(copyOf(observed), NOW + 1).decisions.get(PRIMARY)).toBe(remembered);
    expect(decide(observed, NOW + 120_000).actions.map(({ name }) => name)).toEqual(['probe']);
  });

  test('is made again when anything changes', () => {
    decide(observed, NOW);
    const activity = new Map([...observed.activity].map(([id, each]) => [id, { ...each, inFlight: 1, lastUsedAt: NOW }]));
    expect(decide({ ...observed, activity }, NOW).decisions.get(PRIMARY)).toMatchObject({ state: 'serving' });
    expect(decide(observed, NOW).decisions.get(PRIMARY)).toEqual(decision);
  });
});

/** The same facts in other objects. */
function copyOf(observed: Observed): Observed {
  if (observed.runtime.kind === 'unreachable') return observed;
  const { facts } = observed.runtime;
  return { ...observed, runtime: { kind: 'reachable', facts: { ...facts, workloads: facts.workloads.map((each) => ({ ...each })) } } };
}
