import { describe, expect, test } from '@jest/globals';
import {
  describeRefusal,
  describeStatus,
  isSameStatus,
  isSetback,
  isUrgent,
  readStatus,
} from '../../../../src/cluster/status/decide/slot-resource-status.ts';
import { SlotResourceStatus } from '../../../../src/schema/slot-resource.ts';
import { stampConditions } from '../../../../src/reconciler/decide/outcome/conditions.ts';
import { failed, planOf, PRIMARY, type Scene } from '../../../reconciler/decide/plan-fixture.ts';
import { judge, type Verdict } from './kstatus.ts';
import { AT, condition, primary, READY, slotStatus } from './status-fixture.ts';

const describeIt = (status = slotStatus(), present?: unknown) => describeStatus(status, 'demo', present);

describe('describeStatus()', () => {
  test('says everything that the schema of the resource knows', () => {
    const described = describeIt(slotStatus({ memoryBytes: 12.5, replicas: { present: 2, ready: 1 } }));
    expect(SlotResourceStatus.parse(described)).toEqual(described);
    expect(described).toMatchObject({
      state: 'ready',
      observedGeneration: 3,
      provider: 'gguf',
      backend: 'cpu',
      model: 'a.gguf',
      endpoint: 'http://svc-slot-primary.demo.svc:8080',
      memoryBytes: 13,
      restarts: 1,
      since: '2026-01-31T12:00:00Z',
      replicas: 2,
      readyReplicas: 1,
      selector: 'inference.svc.dev/slot=primary',
    });
    expect(described.conditions?.[0]).toEqual({
      type: 'Ready',
      status: 'True',
      observedGeneration: 3,
      lastTransitionTime: '2026-01-31T12:00:00Z',
      reason: 'ProbePassed',
      message: 'The slot answers',
    });
  });

  test('names no endpoint while none answers', () => {
    const { endpoint: _, ...silent } = slotStatus();
    expect(describeIt(silent)).not.toHaveProperty('endpoint');
  });

  test('keeps the times of what the server already says, in another second too', () => {
    const present = describeIt();
    const later = slotStatus({ since: AT + 90_000, conditions: READY.map((one) => ({ ...one, lastTransitionAt: AT + 90_000 })) });
    expect(isSameStatus(describeIt(later, present), present)).toBe(true);
    const warming = slotStatus({ state: 'warming', since: AT + 90_000, conditions: [condition('Ready', 'False', 'Warming', AT + 90_000)] });
    expect(describeIt(warming, present)).toMatchObject({
      since: '2026-01-31T12:01:30Z',
      conditions: [{ lastTransitionTime: '2026-01-31T12:01:30Z' }],
    });
  });

  test('the order of conditions on the server means nothing', () => {
    const present = describeIt();
    expect(isSameStatus(present, { ...present, conditions: present.conditions?.toReversed() })).toBe(true);
    expect(isSameStatus(present, { ...present, conditions: present.conditions?.slice(1) })).toBe(false);
    expect(isSameStatus(present, { ...present, model: 'b.gguf' })).toBe(false);
    expect(isSameStatus(present, undefined)).toBe(false);
  });

  test.each(['Disabled', 'NotAskedFor', 'IdleTimedOut', 'NoReplicas'] as const)(
    'has no "Ready" for %s: the slot is as it shall be',
    (reason) => {
      const conditions = [condition('Ready', 'False', reason), condition('Reconciling', 'False', 'AtRest'), condition('Stalled', 'False')];
      const described = describeIt(slotStatus({ state: 'offline', conditions }));
      expect(described.conditions?.map(({ type }) => type)).toEqual(['Reconciling', 'Stalled']);
      expect(described.conditions?.[0]).toMatchObject({ status: 'False', reason });
      expect(judge(3, described)).toBe('Current');
      const read = readStatus(primary, described)?.conditions.slice(0, 2);
      expect(read).toMatchObject([
        { type: 'Ready', status: 'False', reason },
        { type: 'Reconciling', status: 'False', reason: 'AtRest', message: 'No action required' },
      ]);
    },
  );

  const judged = [
    ['ready', 3, READY, 'Current'],
    ['ready for the generation before', 4, READY, 'InProgress'],
    ['warming', 3, [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True'), condition('Stalled', 'False')], 'InProgress'],
    ['being unloaded', 3, [condition('Ready', 'False', 'Disabled'), condition('Reconciling', 'True')], 'InProgress'],
    ['stalled', 3, [condition('Ready', 'False', 'CrashLoop'), condition('Reconciling', 'False'), condition('Stalled', 'True')], 'Failed'],
    [
      'backing off',
      3,
      [condition('Ready', 'False', 'Crashed'), condition('Reconciling', 'True'), condition('Stalled', 'False')],
      'InProgress',
    ],
    ['serving with a bad edit', 3, [condition('Ready', 'True'), condition('Reconciling', 'False'), condition('Stalled', 'True')], 'Failed'],
  ] as const;
  test.each(judged)('kstatus takes a slot that is %s for what it is', (_, generation, conditions, verdict) => {
    expect(judge(generation, describeIt(slotStatus({ conditions })))).toBe(verdict);
  });
});

describe('what the planner decides', () => {
  const CRASHES = [5, 4, 3, 2, 1].map((minutes) => failed(minutes * 60_000, 'crash'));
  const cases: Readonly<Record<string, readonly [Scene, Verdict]>> = {
    'a slot that answers': [{ workloads: [{ id: 'w1' }] }, 'Current'],
    'one that is disabled': [{ slot: { enabled: false } }, 'Current'],
    'one scaled to zero': [{ slot: { replicas: 0 }, traits: { network: 'pods' } }, 'Current'],
    'one that nobody asked for': [{ slot: { load: 'on-demand' }, lastActive: undefined }, 'Current'],
    'one unloaded as idle': [{ slot: { lifecycle: { idleTimeout: '1s' } }, lastActive: 2000 }, 'Current'],
    'one that unloads': [{ slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 1 }] }, 'InProgress'],
    'one that starts': [{}, 'InProgress'],
    'one that is swapped': [{ workloads: [{ id: 'w0', revision: 'other' }] }, 'InProgress'],
    'one that crashes again and again': [{ failures: CRASHES }, 'Failed'],
    'one that serves with a bad edit': [{ workloads: [{ id: 'w1' }], problems: [{ path: [], message: 'Bad' }] }, 'Failed'],
    'one whose cluster cannot be asked': [{ unreachable: 'Away' }, 'InProgress'],
  };
  test.each(Object.entries(cases))('kstatus takes %s for what it is', (_, [scene, verdict]) => {
    const decision = planOf(scene).made.decisions.get(PRIMARY);
    const conditions = stampConditions(decision?.conditions ?? [], [], 3, AT);
    expect(conditions.length).toBeGreaterThan(3);
    expect(judge(3, describeIt(slotStatus({ state: decision?.state ?? 'offline', conditions })))).toBe(verdict);
  });
});

describe('describeRefusal()', () => {
  const problems = [{ path: ['lifecycle', 'idleTimeout'], message: 'Write a duration' }];

  test('is failed, for the generation that was refused, and says which field', () => {
    const refused = describeRefusal({ name: primary, generation: 7, problems }, undefined, AT);
    expect(SlotResourceStatus.parse(refused)).toEqual(refused);
    expect(judge(7, refused)).toBe('Failed');
    expect(judge(8, refused)).toBe('InProgress');
    expect(refused.state).toBe('offline');
    expect(refused.conditions?.find(({ type }) => type === 'SpecValid')).toMatchObject({
      status: 'False',
      reason: 'SpecInvalid',
      message: 'lifecycle.idleTimeout: Write a duration',
    });
    expect(isSameStatus(describeRefusal({ name: primary, generation: 7, problems }, refused, AT + 5000), refused)).toBe(true);
    expect(readStatus(primary, refused)).toBeUndefined();
  });
});

describe('readStatus()', () => {
  test('reads what was written', () => {
    const status = slotStatus({ memoryBytes: 5, replicas: { present: 2, ready: 1 } });
    expect(readStatus(primary, describeIt(status))).toEqual({ ...status, endpoint: 'http://svc-slot-primary.demo.svc:8080' });
  });

  test.each([undefined, null, 'ready', [], {}, { state: 'ready' }, { ...describeIt(), model: '../etc' }, { ...describeIt(), backend: 1 }])(
    'does not believe %j',
    (status) => {
      expect(readStatus(primary, status)).toBeUndefined();
    },
  );

  test('does without what is broken', () => {
    const conditions = ['x', { type: 'Ready', status: 'Maybe' }, { type: 'Stalled', status: 'True', lastTransitionTime: 'noon' }];
    const read = readStatus(primary, { ...describeIt(), conditions, restarts: 'many', since: 5 });
    expect(read).toMatchObject({
      restarts: 0,
      since: 0,
      conditions: [{ type: 'Stalled', status: 'True', reason: 'Unknown', lastTransitionAt: 0 }],
    });
  });
});

describe('isUrgent() and isSetback()', () => {
  const ready = describeIt();
  const notReady = slotStatus({ state: 'warming', conditions: [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True')] });
  test.each([
    ['a request came', slotStatus({ state: 'serving', since: AT + 1 }), false],
    ['it restarted', slotStatus({ restarts: 9 }), false],
    ['other words', slotStatus({ conditions: READY.map((one) => ({ ...one, message: 'Yes' })) }), false],
    ['another generation', slotStatus({ observedGeneration: 4 }), true],
    ['another model', slotStatus({ model: slotStatus().model, endpoint: 'http://1.2.3.4:9090' }), true],
    ['no longer ready', notReady, true],
    ['fewer replicas', slotStatus({ replicas: { present: 1, ready: 0 } }), true],
  ])('%s', (_, status, urgent) => {
    expect(isUrgent(describeIt(status, ready), ready)).toBe(urgent);
  });

  test('what was never written is urgent', () => {
    expect(isUrgent(ready, undefined)).toBe(true);
  });

  test('to warm again is a setback where nobody asked for anything else', () => {
    expect(isSetback(describeIt(notReady, ready), ready)).toBe(true);
    expect(isSetback(describeIt({ ...notReady, observedGeneration: 4 }, ready), ready)).toBe(false);
    expect(isSetback(describeIt(notReady), undefined)).toBe(false);
  });
});
