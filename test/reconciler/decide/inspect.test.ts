import { describe, expect, test } from '@jest/globals';
import type { Action } from '../../../src/reconciler/decide/facts/actions.ts';
import type { Finding, Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { WorkloadId } from '../../../src/schema/names.ts';
import type { SlotState } from '../../../src/schema/slot-status.ts';
import { NOW, PRIMARY, factsOf, type Scene } from './plan-fixture.ts';

const because: Finding = { reason: 'Unknown', message: 'It is a test' };

/** What is wrong with the plan for a scene once it has been changed like this. */
function wrong(scene: Scene, change: (made: Plan) => Plan, from?: SlotState): string {
  const { desired, observed } = factsOf(scene);
  const made = plan(desired, observed, NOW);
  const decision = made.decisions.get(PRIMARY);
  const last = from === undefined || decision === undefined ? [] : [{ decision: { ...decision, state: from }, since: 0, conditions: [] }];
  const published = new Map(last.map((each) => [PRIMARY, each] as const));
  return inspect(change(made), desired, { ...observed, published }, NOW).join('; ');
}

const doing = (scene: Scene): readonly Action[] => {
  const { desired, observed } = factsOf(scene);
  return plan(desired, observed, NOW).actions;
};
const stop = (id: string): Action => ({
  name: 'stop',
  slot: PRIMARY,
  because,
  args: { slot: PRIMARY, workload: WorkloadId.parse(id), graceMs: 1000, abort: true, failure: undefined },
});
const planWith = (actions: readonly Action[], traits: NonNullable<Scene['traits']>): Plan => {
  const { desired, observed } = factsOf({ traits });
  return { ...plan(desired, observed, NOW), actions };
};
const adding =
  (...actions: readonly Action[]) =>
  (made: Plan): Plan => ({ ...made, actions: [...made.actions, ...actions] });

describe('inspect()', () => {
  test('accepts a good plan', () => {
    expect(wrong({}, (made) => made)).toBe('');
  });

  test('rejects an action that is planned twice, and a port that is given twice', () => {
    expect(wrong({}, (made) => adding(...made.actions)(made))).toContain('Starts "apply:primary" twice');
    expect(wrong({}, (made) => adding(...made.actions)(made))).toContain('Gives port 18080 to slot "primary", which is taken');
  });

  test('rejects the start of a workload that is not wanted, lacks something, or exists already', () => {
    const start = doing({});
    expect(wrong({ slot: { enabled: false } }, adding(...start))).toContain('which is not wanted');
    expect(wrong({ model: 'pullable' }, adding(...start))).toContain('without its model');
    expect(wrong({ image: false }, adding(...start))).toContain('without its image');
    expect(wrong({ workloads: [{ id: 'w1', probe: 'loading' }] }, adding(...start))).toContain('beside one that does not answer');
    expect(wrong({ workloads: [{ id: 'w1' }] }, adding(...start))).toContain('with the name "svc-slot-primary", which is taken');
  });

  test('rejects the stop of a workload that gets or has requests, or does not exist', () => {
    expect(wrong({ workloads: [{ id: 'w1' }] }, adding(stop('w1')))).toContain('Stops "w1" of slot "primary", which gets requests');
    const draining: Scene = { slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 3, draining: 29_999 }] };
    expect(wrong(draining, adding(stop('w1')))).toBe('Stops "w1" with 3 requests in flight before its drain time is over');
    expect(wrong({}, adding(stop('w9')))).toBe('Stops "w9", which does not exist');
  });

  test('rejects the update of a workload that does not exist, is another one, or drains', () => {
    const traits = { network: 'pods', inPlace: { findAltered: () => ['env'], isOutdated: () => false } } as const;
    const update = doing({ traits, workloads: [{ id: 'w1' }] });
    expect(update).toMatchObject([{ name: 'apply', args: { updatesInPlace: { workload: 'w1' } } }]);
    expect(wrong({ traits }, adding(...update))).toContain('Updates "w1", which does not exist or is ending');
    expect(wrong({ traits, workloads: [{ id: 'w1', phase: 'stopping' }] }, adding(...update))).toContain(
      'which does not exist or is ending',
    );
    expect(wrong({ traits, workloads: [{ id: 'w1', revision: 'other' }] }, adding(...update))).toContain('to another workload');
    expect(wrong({ traits, slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 1 }] }, adding(...update))).toContain(
      'which is draining',
    );
    expect(wrong({ workloads: [{ id: 'w1' }] }, adding(...update))).toContain('which this runtime cannot do');
  });

  test('rejects pods for a slot without replicas, and another number of replicas', () => {
    const traits = { network: 'pods' } as const;
    const start = doing({ traits });
    expect(wrong({ traits, slot: { replicas: 0 } }, adding(...start))).toContain('which is not wanted');
    expect(wrong({ traits, slot: { replicas: 2 } }, () => planWith(start, traits))).toContain('another number of replicas');
  });

  test('rejects a target with an address that the workload does not have', () => {
    const elsewhere = (made: Plan): Plan => ({
      ...made,
      decisions: new Map(
        [...made.decisions].map(([name, decision]) => [
          name,
          { ...decision, targets: decision.targets.map((target) => ({ ...target, endpoint: { host: '10.9.9.9', port: 1 } })) },
        ]),
      ),
    });
    expect(wrong({ workloads: [{ id: 'w1' }] }, elsewhere)).toContain('"10.9.9.9:1", where it does not listen');
  });

  test('rejects a move that is not in the table', () => {
    expect(wrong({ workloads: [{ id: 'w1' }] }, (made) => made, 'pulling')).toContain('from "pulling" to "ready"');
    expect(wrong({ workloads: [{ id: 'w1' }] }, (made) => made, 'warming')).toBe('');
  });

  test('rejects actions while the runtime is unreachable', () => {
    expect(wrong({ unreachable: 'No socket' }, adding(...doing({})))).toContain('while the runtime cannot be reached');
  });

  test('rejects an open slot without a target', () => {
    const open = (made: Plan): Plan => ({
      ...made,
      decisions: new Map([...made.decisions].map(([name, decision]) => [name, { ...decision, admission: { kind: 'open' } as const }])),
    });
    expect(wrong({}, open)).toContain('without a target');
  });
});
