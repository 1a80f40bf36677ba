import { describe, expect, test } from '@jest/globals';
import type { Decision, RunningAction } from '../../../../src/reconciler/decide/facts/facts.ts';
import { isOvertaken, isTreatedOtherwise, type PassingFacts } from '../../../../src/reconciler/decide/facts/recorded-failures.ts';
import { plan } from '../../../../src/reconciler/decide/plan.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { slotName } from '../../../support/simulation/world.ts';
import { factsOf, NOW, PRIMARY } from '../plan-fixture.ts';

const { desired, observed } = factsOf({ workloads: [{ id: 'w1' }], budgetBytes: 10_000_000, lastActive: 1000 });
const W1 = WorkloadId.parse('w1');
const history = observed.histories.get(W1);
if (history === undefined) throw new Error('The workload has no history');
const because = { reason: 'IdleTimedOut', message: 'Nobody uses it' } as const;
const stop: RunningAction = {
  action: { name: 'stop', slot: PRIMARY, args: { slot: PRIMARY, workload: W1, graceMs: 0, abort: false, failure: undefined }, because },
  startedAt: NOW,
};
const CHANGES: readonly (readonly [string, Partial<PassingFacts>])[] = [
  ['a request waits for it', { demand: new Map([[PRIMARY, { waiting: 1, lastAskedAt: NOW }]]) }],
  ['a request has entered its server', { activity: new Map([[W1, { inFlight: 1, lastUsedAt: NOW }]]) }],
  ['it has failed', { attempts: new Map([[PRIMARY, { generation: 1, failures: [], repairs: undefined, starts: 1 }]]) }],
  ['its server was probed', { histories: new Map([[W1, { ...history, seenAt: NOW }]]) }],
];

describe('a pass that changes a slot is overtaken if', () => {
  test.each(CHANGES)('%s', (_, change) => {
    expect(isOvertaken(new Set([PRIMARY]), observed, { ...observed, ...change })).toBe(true);
    expect(isOvertaken(new Set([slotName('other')]), observed, { ...observed, ...change })).toBe(false);
    expect(isOvertaken(new Set(), observed, { ...observed, ...change })).toBe(false);
  });

  test('an action on it has ended, or has come further', () => {
    const before = { ...observed, running: new Map([[`stop:${W1}`, stop]]) };
    for (const running of [new Map(), new Map([[`stop:${W1}`, { ...stop, cancelled: true as const }]])]) {
      expect(isOvertaken(new Set([PRIMARY]), before, { ...before, running })).toBe(true);
      expect(isOvertaken(new Set([slotName('other')]), before, { ...before, running })).toBe(false);
    }
  });

  test('a port turned out to be taken, which a start may use', () => {
    expect(isOvertaken(new Set([PRIMARY]), observed, { ...observed, takenPorts: new Set([18_080]) })).toBe(true);
  });
});

test('a pass is not overtaken where everything means the same', () => {
  const activity = new Map([[W1, { inFlight: 1, lastUsedAt: NOW }]]);
  const again = new Map([[W1, { inFlight: 1, lastUsedAt: NOW }]]);
  expect(isOvertaken(new Set([PRIMARY]), { ...observed, activity }, { ...observed, activity: again })).toBe(false);
});

describe('the requests of a slot', () => {
  const decision = plan(desired, observed, NOW).decisions.get(PRIMARY);
  if (decision === undefined) throw new Error('Nothing was decided');
  test.each<readonly [string, Partial<Decision>, boolean]>([
    ['are treated otherwise if they are not let in', { admission: { kind: 'park' } }, true],
    ['are treated otherwise if they go elsewhere', { targets: [] }, true],
    ['are treated otherwise if its server drains', { draining: [W1] }, true],
    ['are treated as before if only its state is another one', { state: 'serving' }, false],
  ])('%s', (_, change, expected) => {
    expect(isTreatedOtherwise(decision, { ...decision, ...change })).toBe(expected);
  });

  test('are treated otherwise if nothing was known of it and it has a server', () => {
    expect(isTreatedOtherwise(undefined, decision)).toBe(true);
    expect(isTreatedOtherwise(undefined, { ...decision, targets: [] })).toBe(false);
  });
});
