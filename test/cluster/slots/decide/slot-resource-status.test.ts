import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import {
  refusedResourceStatus,
  toResourceStatus,
  isSameStatus,
  isSetback,
  isUrgent,
  parseResourceStatus,
} from '../../../../src/cluster/slots/decide/slot-resource-status.ts';
import { SlotResourceStatus } from '../../../../src/schema/slot/slot-resource.ts';
import { stampConditions } from '../../../../src/reconciler/decide/outcome/conditions.ts';
import { failed, planOf, PRIMARY, type Scene } from '../../../reconciler/decide/plan-fixture.ts';
import { judge, type Verdict } from './kstatus.ts';
import { AT, condition, primary, READY, slotStatus } from './status-fixture.ts';

const judgeAt = (generation: number, status: unknown) => judge({ metadata: { generation }, status });
const published = (status = slotStatus(), present?: SlotResourceStatus) => toResourceStatus(status, 'demo', present);

describe('toResourceStatus()', () => {
  test('fills every field of the schema of the resource', () => {
    const status = published(slotStatus({ memoryBytes: 12.5, replicas: { present: 2, ready: 1 } }));
    expect(SlotResourceStatus.parse(status)).toEqual(status);
    expect(status).toMatchObject({
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
    expect(status.conditions?.[0]).toEqual({
      type: 'Ready',
      status: 'True',
      observedGeneration: 3,
      lastTransitionTime: '2026-01-31T12:00:00Z',
      reason: 'ProbePassed',
      message: 'The slot answers',
    });
  });

  test('passes failures on to the next leader', () => {
    const failures = [{ at: AT, kind: 'start-timeout', reason: 'StartTimeout', message: 'The server did not answer' }] as const;
    const status = published(slotStatus({ failures, failedSpec: '0123456789abcdef' }));
    expect(SlotResourceStatus.parse(status)).toEqual(status);
    expect(parseResourceStatus(primary, status)).toMatchObject({ failures, failedSpec: '0123456789abcdef' });
    expect(parseResourceStatus(primary, { ...status, failures: [{ at: 'never' }] })?.failures).toBeUndefined();
    expect(parseResourceStatus(primary, published())).not.toHaveProperty('failures');
  });

  test('tells autoscalers which pods to count: those of one workload, or at rest none of any', () => {
    const selector = 'app.kubernetes.io/instance=svc-slot-primary--abc';
    const swapping = published(slotStatus({ replicas: { present: 3, ready: 3, selector } }));
    expect([swapping.replicas, swapping.selector]).toEqual([3, selector]);
    expect(published().selector).toBe('inference.svc.dev/slot=primary');
  });

  test('has no endpoint while the slot does not answer', () => {
    const { endpoint: _, ...silent } = slotStatus();
    expect(JSON.parse(JSON.stringify(published(silent)))).not.toHaveProperty('endpoint');
  });

  test('keeps the times of unchanged parts, also in a later second', () => {
    const present = published();
    const later = slotStatus({ since: AT + 90_000, conditions: READY.map((one) => ({ ...one, lastTransitionAt: AT + 90_000 })) });
    expect(isSameStatus(published(later, present), present)).toBe(true);
    const warming = slotStatus({ state: 'warming', since: AT + 90_000, conditions: [condition('Ready', 'False', 'Warming', AT + 90_000)] });
    expect(published(warming, present)).toMatchObject({
      since: '2026-01-31T12:01:30Z',
      conditions: [{ lastTransitionTime: '2026-01-31T12:01:30Z' }],
    });
  });

  test('ignores the order of conditions on the server', () => {
    const present = published();
    expect(isSameStatus(present, { ...present, conditions: present.conditions?.toReversed() })).toBe(true);
    expect(isSameStatus(present, { ...present, conditions: present.conditions?.slice(1) })).toBe(false);
    expect(isSameStatus(present, { ...present, model: 'b.gguf' })).toBe(false);
    expect(isSameStatus(present, undefined)).toBe(false);
  });

  test.each(['Disabled', 'NotAskedFor', 'IdleTimedOut', 'NoReplicas'] as const)('has no "Ready" for %s: the slot is current', (reason) => {
    const conditions = [condition('Ready', 'False', reason), condition('Reconciling', 'False', 'AtRest'), condition('Stalled', 'False')];
    const status = published(slotStatus({ state: 'offline', conditions }));
    expect(status.conditions?.map(({ type }) => type)).toEqual(['Reconciling', 'Stalled']);
    expect(status.conditions?.[0]).toMatchObject({ status: 'False', reason });
    expect(judgeAt(3, status)).toBe('Current');
    const read = parseResourceStatus(primary, status)?.conditions.slice(0, 2);
    expect(read).toMatchObject([
      { type: 'Ready', status: 'False', reason },
      { type: 'Reconciling', status: 'False', reason: 'AtRest', message: 'No action required' },
    ]);
  });

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
  test.each(judged)('kstatus judges a slot correctly that is %s', (_, generation, conditions, verdict) => {
    expect(judgeAt(generation, published(slotStatus({ conditions })))).toBe(verdict);
  });
});

describe('The decisions of the planner', () => {
  const CRASHES = [5, 4, 3, 2, 1].map((minutes) => failed(minutes * 60_000, 'crash'));
  const BAD = [{ path: [], message: 'Bad' }];
  /** What kstatus says, and what "kubectl get" shows in the columns READY, UP-TO-DATE and REASON. */
  const cases: Readonly<Record<string, readonly [Scene, Verdict, string]>> = {
    'a slot that is ready': [{ workloads: [{ id: 'w1' }] }, 'Current', 'True True ProbePassed'],
    'one that is disabled': [{ slot: { enabled: false } }, 'Current', 'False True Disabled'],
    'one scaled to zero': [{ slot: { replicas: 0 }, traits: { network: 'pods' } }, 'Current', 'False True NoReplicas'],
    'one without a request': [{ slot: { load: 'on-demand' }, lastActive: undefined }, 'Current', 'False True NotAskedFor'],
    'one unloaded as idle': [{ slot: { lifecycle: { idleTimeout: '1s' } }, lastActive: 2000 }, 'Current', 'False True IdleTimedOut'],
    'one without a request and with a bad edit': [
      { slot: { load: 'on-demand' }, lastActive: undefined, problems: BAD },
      'Failed',
      'False False SpecInvalid',
    ],
    'one that unloads': [{ slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 1 }] }, 'InProgress', 'False False Disabled'],
    'one that starts': [{}, 'InProgress', 'False False Starting'],
    'one that warms up': [{ workloads: [{ id: 'w1', probe: 'loading' }] }, 'InProgress', 'False False Warming'],
    'one that is swapped': [{ workloads: [{ id: 'w0', revision: 'other' }] }, 'InProgress', 'True False PreviousServes'],
    'one that crashed and waits': [{ failures: [failed(100, 'crash')] }, 'InProgress', 'False False Crashed'],
    'one that crashes again and again': [{ failures: CRASHES }, 'Failed', 'False False CrashLoop'],
    'one that serves with a bad edit': [{ workloads: [{ id: 'w1' }], problems: BAD }, 'Failed', 'True False SpecInvalid'],
    'one whose cluster cannot be reached': [{ unreachable: 'Away' }, 'InProgress', 'Unknown Unknown RuntimeUnreachable'],
  };
  const publishedFor = (told: Scene): SlotResourceStatus => {
    const decision = planOf(told).made.decisions.get(PRIMARY);
    const conditions = stampConditions(decision?.conditions ?? [], [], 3, AT);
    expect(conditions.length).toBeGreaterThan(3);
    return published(slotStatus({ state: decision?.state ?? 'offline', conditions }));
  };

  test.each(Object.entries(cases))('kstatus and users can tell: %s', (_, [told, verdict, columns]) => {
    const status = publishedFor(told);
    expect(judgeAt(3, status)).toBe(verdict);
    const { ready, reason, message } = status.summary ?? {};
    const upToDate = status.conditions?.find(({ type }) => type === 'UpToDate')?.status;
    expect(`${ready} ${upToDate} ${reason}`).toBe(columns);
    expect(message).toMatch(/^[A-Z].{5,}/s);
  });

  test('kstatus waits after an edit, and for the end of a slot that is being deleted', () => {
    const status = publishedFor({ workloads: [{ id: 'w1' }] });
    expect(judgeAt(4, status)).toBe('InProgress');
    expect(judge({ metadata: { generation: 3, deletionTimestamp: '2026-01-01T00:00:00Z' }, status })).toBe('Terminating');
  });

  test('kstatus waits for a slot that no gateway has looked at, where the schema gives it its first status', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../../crds/slotspecs.inference.svc.dev.yaml'), 'utf8');
    const { default: given, properties } = parse(text).spec.versions[0].schema.openAPIV3Schema.properties.status;
    expect(judgeAt(1, undefined)).toBe('Current');
    expect(judgeAt(1, given)).toBe('InProgress');
    expect(SlotResourceStatus.parse(given)).toEqual(given);
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(given)));
    // What a leader publishes replaces all of it.
    expect(publishedFor({ slot: { enabled: false } })).toMatchObject({ observedGeneration: 3, summary: { reason: 'Disabled' } });
  });
});

describe('refusedResourceStatus()', () => {
  const problems = [{ path: ['lifecycle', 'idleTimeout'], message: 'Write a duration' }];

  test('is failed for the refused generation and names the field', () => {
    const refused = refusedResourceStatus({ name: primary, generation: 7, problems, at: AT }, undefined);
    expect(SlotResourceStatus.parse(refused)).toEqual(refused);
    expect(judgeAt(7, refused)).toBe('Failed');
    expect(judgeAt(8, refused)).toBe('InProgress');
    expect(refused.state).toBe('offline');
    expect(refused.summary).toEqual({ ready: 'False', reason: 'SpecInvalid', message: 'lifecycle.idleTimeout: Write a duration' });
    expect(refused.conditions?.find(({ type }) => type === 'SpecValid')).toMatchObject({
      status: 'False',
      reason: 'SpecInvalid',
      message: 'lifecycle.idleTimeout: Write a duration',
    });
    expect(isSameStatus(refusedResourceStatus({ name: primary, generation: 7, problems, at: AT + 5000 }, refused), refused)).toBe(true);
    expect(parseResourceStatus(primary, refused)).toBeUndefined();
  });
});

describe('parseResourceStatus()', () => {
  test('parses what was published', () => {
    const status = slotStatus({ memoryBytes: 5, replicas: { present: 2, ready: 1 } });
    expect(parseResourceStatus(primary, published(status))).toEqual({ ...status, endpoint: 'http://svc-slot-primary.demo.svc:8080' });
  });

  test.each([undefined, null, 'ready', [], {}, { state: 'ready' }, { ...published(), model: '../etc' }, { ...published(), backend: 1 }])(
    'rejects %j',
    (status) => {
      expect(parseResourceStatus(primary, status)).toBeUndefined();
    },
  );

  test('replaces damaged parts with defaults', () => {
    const conditions = ['x', { type: 'Ready', status: 'Maybe' }, { type: 'Stalled', status: 'True', lastTransitionTime: 'noon' }];
    const read = parseResourceStatus(primary, { ...published(), conditions, restarts: 'many', since: 5 });
    expect(read).toMatchObject({
      restarts: 0,
      since: 0,
      conditions: [{ type: 'Stalled', status: 'True', reason: 'Unknown', lastTransitionAt: 0 }],
    });
  });
});

describe('isUrgent() and isSetback()', () => {
  const ready = published();
  const notReady = slotStatus({ state: 'warming', conditions: [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True')] });
  test.each([
    ['a request arrived', slotStatus({ state: 'serving', since: AT + 1 }), false],
    ['it restarted', slotStatus({ restarts: 9 }), false],
    ['another message', slotStatus({ conditions: READY.map((one) => ({ ...one, message: 'Yes' })) }), false],
    ['another reason', slotStatus({ conditions: READY.map((one) => ({ ...one, reason: 'PreviousServes' as const })) }), true],
    ['another generation', slotStatus({ observedGeneration: 4 }), true],
    ['another model', slotStatus({ model: slotStatus().model, endpoint: 'http://1.2.3.4:9090' }), true],
    ['no longer ready', notReady, true],
    ['fewer replicas', slotStatus({ replicas: { present: 1, ready: 0 } }), true],
  ])('%s', (_, status, urgent) => {
    expect(isUrgent(published(status, ready), ready)).toBe(urgent);
  });

  test('a status that was never published is urgent', () => {
    expect(isUrgent(ready, undefined)).toBe(true);
  });

  test('warming again without another spec is a setback', () => {
    expect(isSetback(published(notReady, ready), ready)).toBe(true);
    expect(isSetback(published({ ...notReady, observedGeneration: 4 }, ready), ready)).toBe(false);
    expect(isSetback(published(notReady), undefined)).toBe(false);
  });
});
