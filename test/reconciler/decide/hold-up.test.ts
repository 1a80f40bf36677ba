import { describe, expect, test } from '@jest/globals';
import { gather } from '../../../src/reconciler/decide/facts/gather.ts';
import { slotFactsOf } from '../../../src/reconciler/decide/facts/slot-facts.ts';
import { viewSlot } from '../../../src/reconciler/decide/facts/view.ts';
import { holdUp, withoutBroken } from '../../../src/reconciler/decide/hold-up.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { failed, factsOf, NOW, PRIMARY, type Scene } from './plan-fixture.ts';

const one = { id: 'w1' } as const;

/** State and admission of a slot that cannot be planned in this pass and was planned as `before` in the last one. */
function heldUp(now: Scene, before: Scene = now): string {
  const { desired, observed, slot } = factsOf(now);
  const earlier = factsOf(before);
  const last = plan(earlier.desired, earlier.observed, NOW).decisions.get(PRIMARY);
  const { state, admission } = holdUp(viewSlot(slotFactsOf(slot, gather(desired, observed, NOW)), NOW), last, 'it exploded');
  return `${state}, ${admission.kind === 'refuse' ? admission.code : admission.kind}`;
}

const CASES: Readonly<Record<string, readonly [string, Scene, Scene?]>> = {
  'keeps its requests while its server answers': ['ready, open', { workloads: [one] }],
  'is idle after requests': ['idle, open', { workloads: [{ ...one, used: true }] }],
  'serves while it has requests': ['serving, open', { workloads: [{ ...one, inFlight: 1 }] }],
  'sends no requests to a server that has not answered yet': ['warming, slot.stalled', { workloads: [{ ...one, probe: 'loading' }] }],
  'sends no requests to a server that has exited since': [
    'offline, slot.stalled',
    { workloads: [{ ...one, phase: 'exited' }] },
    { workloads: [one] },
  ],
  'sends no requests to a server that is being stopped': [
    'unloading, slot.stalled',
    { workloads: [{ ...one, phase: 'stopping' }] },
    { workloads: [one] },
  ],
  'shows that its server starts': ['starting, slot.stalled', { workloads: [{ ...one, phase: 'created', probe: 'none' }] }],
  'is offline without a server': ['offline, slot.stalled', {}],
  'is disabled where its spec says so': ['offline, slot.disabled', { slot: { enabled: false } }],
};

describe('a slot that cannot be planned', () => {
  for (const [sentence, [outcome, now, before]] of Object.entries(CASES))
    test(`${sentence}`, () => expect(heldUp(now, before)).toBe(outcome));

  test('shows its last failure, as one does whose runtime is unreachable', () => {
    const scene: Scene = { failures: [failed(3000, 'crash', 'OutOfMemory'), failed(2000, 'probe', 'ProbeFailing')] };
    const { desired, observed, slot } = factsOf(scene);
    const held = holdUp(viewSlot(slotFactsOf(slot, gather(desired, observed, NOW)), NOW), undefined, 'it exploded');
    expect(held.lastFailure?.failure.reason).toBe('ProbeFailing');
    const away = factsOf({ ...scene, unreachable: 'No socket' });
    expect(plan(away.desired, away.observed, NOW).decisions.get(PRIMARY)?.lastFailure?.failure.reason).toBe('ProbeFailing');
  });
});

describe('a plan that breaks a rule', () => {
  const { desired, observed } = factsOf({});
  const made = plan(desired, observed, NOW);
  const broken = { rule: 'it-starts', slot: PRIMARY, message: 'It starts' };

  test('loses the actions of the slot that it concerns, which says why', () => {
    const { plan: sound } = withoutBroken(made, { desired, observed, now: NOW }, ({ actions }) => (actions.length > 0 ? [broken] : []));
    expect(made.actions).not.toEqual([]);
    expect(sound?.actions).toEqual([]);
    expect(sound?.decisions.get(PRIMARY)?.findings).toMatchObject([
      { reason: 'InternalError', message: expect.stringContaining('left as it is: It starts;') },
    ]);
  });

  test.each([
    ['without that slot, it breaks one still', [broken]],
    ['the rule concerns no single slot', [{ ...broken, slot: undefined }]],
  ])('is not carried out if %s', (_, objections) => {
    expect(withoutBroken(made, { desired, observed, now: NOW }, () => objections).plan).toBeUndefined();
  });
});
