import { describe, expect, test } from '@jest/globals';
import type { Action } from '../../../src/reconciler/decide/facts/actions.ts';
import type { Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { Finding } from '../../../src/schema/words/failure.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import type { SlotState } from '../../../src/schema/status/slot-status.ts';
import { slotName } from '../../support/simulation/world.ts';
import { NOW, PRIMARY, factsOf, planOf, type Scene } from './plan-fixture.ts';

const because: Finding = { reason: 'Unknown', message: 'It is a test' };

/** What is wrong with the plan for a scene once it has been changed like this. */
function wrong(scene: Scene, change: (made: Plan) => Plan, from?: SlotState): string {
  const { desired, observed } = factsOf(scene);
  const made = plan(desired, observed, NOW);
  const decision = made.decisions.get(PRIMARY);
  const last = from === undefined || decision === undefined ? [] : [{ decision: { ...decision, state: from }, since: 0, conditions: [] }];
  const published = new Map(last.map((each) => [PRIMARY, each] as const));
  return inspect(change(made), desired, { ...observed, published }, NOW)
    .map(({ message }) => message)
    .join('; ');
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
const planFor = (scene: Scene): Plan => planOf(scene).made;
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
      'which is not wanted',
    );
    expect(wrong({ workloads: [{ id: 'w1' }] }, adding(...update))).toContain('which this runtime cannot do');
  });

  test('rejects pods for a slot without replicas, and another number of replicas', () => {
    const traits = { network: 'pods' } as const;
    const start = doing({ traits });
    expect(wrong({ traits, slot: { replicas: 0 } }, adding(...start))).toContain('which is not wanted');
    expect(wrong({ traits, slot: { replicas: 2 } }, () => planWith(start, traits))).toContain('another number of replicas');
  });

  /** A plan that stops the workload and claims in its decision whatever would justify that. */
  const stoppedQuietly = (made: Plan): Plan => ({
    ...made,
    actions: [...made.actions, stop('w1')],
    decisions: new Map(
      [...made.decisions].map(([name, decision]) => [
        name,
        {
          ...decision,
          wanted: false,
          serving: undefined,
          targets: [],
          admission: { kind: 'park' },
          state: 'unloading',
          draining: [WorkloadId.parse('w1')],
        },
      ]),
    ),
  });

  test('rejects the stop of a workload that is wanted, current and passing, whatever the plan claims', () => {
    const message = 'Stops "w1" of slot "primary", which is wanted, current and passing';
    expect(wrong({ workloads: [{ id: 'w1' }] }, stoppedQuietly)).toBe(message);
    const onDemand = { load: 'on-demand', lifecycle: { idleTimeout: '10s' } } as const;
    expect(wrong({ slot: onDemand, lastActive: 9999, workloads: [{ id: 'w1' }] }, stoppedQuietly)).toBe(message);
    expect(wrong({ slot: onDemand, lastActive: undefined, waiting: 1, workloads: [{ id: 'w1' }] }, stoppedQuietly)).toBe(message);
    expect(wrong({ budgetBytes: 1000, workloads: [{ id: 'w1' }] }, stoppedQuietly)).toBe(message);
  });

  test.each<[string, Scene]>([
    ['is not enabled', { slot: { enabled: false }, workloads: [{ id: 'w1' }] }],
    ['is idle', { slot: { lifecycle: { idleTimeout: '10s' } }, lastActive: 10_000, workloads: [{ id: 'w1' }] }],
    ['was never asked for', { slot: { load: 'on-demand' }, lastActive: undefined, workloads: [{ id: 'w1' }] }],
    ['is outdated', { workloads: [{ id: 'w1', revision: 'other' }] }],
    ['was altered', { workloads: [{ id: 'w1', altered: { argv: ['x'] } }] }],
    ['does not pass its probes', { workloads: [{ id: 'w1', probe: 'dead' }] }],
    ['has not passed a probe', { workloads: [{ id: 'w1', probe: 'loading' }] }],
    ['is one of two', { workloads: [{ id: 'w1' }, { id: 'w2', name: 'other', port: 18_081 }] }],
    ['needs memory that others may need', { budgetBytes: 999, workloads: [{ id: 'w1' }] }],
  ])('accepts the stop of a workload that %s', (_why, scene) => {
    expect(wrong(scene, stoppedQuietly)).not.toContain('which is wanted, current and passing');
  });

  test.each([
    ['accepts the stop of a workload that was loaded ahead of requests, without one since', 9000, false, false],
    ['rejects it after a request', 20, false, true],
    ['rejects it while the workload is to be loaded ahead of requests', 9000, true, true],
  ])('%s', (_, requestedMs, isWarm, rejects) => {
    const { desired, observed } = factsOf({ slot: { load: 'on-demand' }, lastActive: requestedMs, workloads: [{ id: 'w1' }] });
    const made = plan(desired, observed, NOW);
    const ahead = { lastActiveAt: NOW - 9000 };
    const published = new Map(
      [...made.decisions].map(([name, decision]) => [name, { decision: { ...decision, ahead }, since: 0, conditions: [] }]),
    );
    const warm = new Map(isWarm ? [[PRIMARY, because]] : []);
    const found = inspect(stoppedQuietly(made), desired, { ...observed, published, warm }, NOW);
    expect(found.some(({ message }) => message.endsWith('wanted, current and passing'))).toBe(rejects);
  });

  test('rejects the stop of one of two while the other one is being stopped', () => {
    const { desired, observed } = factsOf({ workloads: [{ id: 'w1' }, { id: 'w2', name: 'other', port: 18_081 }] });
    const running = new Map([['stop:w2', { action: stop('w2'), startedAt: NOW }]]);
    const objections = inspect(stoppedQuietly(plan(desired, observed, NOW)), desired, { ...observed, running }, NOW);
    expect(objections.map(({ message }) => message)).toContain('Stops "w1" of slot "primary", which is wanted, current and passing');
  });

  test.each([[1000], [2000]])('knows what a start under way will hold, whatever its slot asks for since then: %s B', (modelBytes) => {
    const { desired, observed } = factsOf({ budgetBytes: 1500, workloads: [{ id: 'w1' }] });
    const running = new Map(doing({ modelBytes }).map((action) => ['apply:primary', { action, startedAt: NOW }]));
    const objections = inspect(stoppedQuietly(plan(desired, observed, NOW)), desired, { ...observed, running }, NOW);
    expect(objections.some(({ message }) => message.endsWith('wanted, current and passing'))).toBe(modelBytes === 1000);
  });

  test('rejects a start for which there is no memory, counting all that runs', () => {
    expect(wrong({ budgetBytes: 1000 }, (made) => made)).toBe('');
    const start = doing({});
    expect(wrong({ budgetBytes: 999 }, adding(...start))).toContain('after which 1000 bytes of a budget of 999 are in use');
    const old: Scene = { workloads: [{ id: 'w0', revision: 'other', name: 'old', port: 18_081 }] };
    expect(wrong({ ...old, budgetBytes: 1999 }, () => planFor({ ...old }))).toContain(
      'after which 2000 bytes of a budget of 1999 are in use',
    );
    expect(wrong({ ...old, budgetBytes: 2000 }, () => planFor({ ...old }))).toBe('');
    const insists = { ...old, slot: { lifecycle: { swap: 'blue-green' } } } as const;
    expect(wrong({ ...insists, budgetBytes: 1000 }, () => planFor(insists))).toBe('');
  });

  test('rejects a start of another revision, and an action in the name of another slot', () => {
    const other = doing({ slot: { model: { default: 'a.gguf', args: ['--other'] } } });
    expect(wrong({}, (made) => ({ ...made, actions: other }))).toMatch(/Starts revision "\w+" of slot "primary", which asks for "\w+"/);
    const renamed = doing({}).map((action) => ({ ...action, slot: slotName('embed') }));
    expect(wrong({}, (made) => ({ ...made, actions: renamed }))).toContain('Acts on slot "primary" in the name of slot "embed"');
  });

  test('rejects a target that has not passed a probe', () => {
    const opened = (made: Plan): Plan => {
      const { made: good } = planOf({ workloads: [{ id: 'w1' }] });
      return { ...good, actions: made.actions };
    };
    expect(wrong({ workloads: [{ id: 'w1', probe: 'loading' }] }, opened)).toContain('to "w1", which has not passed a probe');
  });

  test('rejects a sleep of a server that is used, needed, asleep or gone, and a wake of one that is awake', () => {
    const sleep = {
      appliesTo: () => true,
      enter: async () => undefined,
      leave: async () => undefined,
    };
    const rested: Scene = {
      abilities: { sleep },
      slot: { lifecycle: { idleTimeout: '10s' } },
      lastActive: 20_000,
      workloads: [{ id: 'w1' }],
    };
    const asleep: Scene = { ...rested, waiting: 1, workloads: [{ id: 'w1', probe: 'asleep' }] };
    const [put, wake] = [doing(rested), doing(asleep)];
    expect([put, wake].map((actions) => actions.map(({ name }) => name))).toEqual([['sleep'], ['wake']]);
    const parked = (made: Plan): Plan => ({ ...made, actions: put });
    expect(wrong({ ...rested, workloads: [{ id: 'w1', inFlight: 2 }] }, parked)).toContain('which has requests in flight');
    expect(wrong({ ...rested, lastActive: 9000 }, parked)).toContain('which is needed');
    expect(wrong({ ...rested, lastActive: 9000 }, parked)).toContain('which gets requests');
    expect(wrong({ ...rested, waiting: 1 }, parked)).toContain('which is needed');
    expect(wrong({ ...rested, workloads: [{ id: 'w1', probe: 'asleep' }] }, parked)).toContain(
      'The action "sleep" on "w1" of slot "primary", which is so already',
    );
    expect(wrong({ ...rested, workloads: [] }, parked)).toContain('which does not run for it');
    expect(wrong({ ...rested, abilities: {} }, parked)).toContain('which has no server that can sleep');
    expect(wrong(rested, (made) => ({ ...made, actions: wake }))).toContain(
      'The action "wake" on "w1" of slot "primary", which is so already',
    );
    const serving = planFor({ workloads: [{ id: 'w1' }] });
    expect(wrong(asleep, (made) => ({ ...made, decisions: serving.decisions }))).toContain('to "w1", which sleeps');
  });

  test('rejects a stop while other clients use the server, in its drain time', () => {
    const counted = { count: 3, at: NOW - 500 };
    const off: Scene = { slot: { enabled: false }, workloads: [{ id: 'w1', counted }] };
    expect(wrong(off, adding(stop('w1')))).toContain('with 3 requests of other clients before its drain time is over');
    for (const more of [{ draining: 30_000 }, { counted: { count: 3, at: NOW - 1500 } }, { probe: 'silent' } as const])
      expect(wrong({ ...off, workloads: [{ id: 'w1', counted, ...more }] }, (made) => made)).toBe('');
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
