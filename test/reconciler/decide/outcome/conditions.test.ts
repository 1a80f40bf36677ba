import { describe, expect, test } from '@jest/globals';
import { stampConditions } from '../../../../src/reconciler/decide/outcome/conditions.ts';
import type { ConditionInput } from '../../../../src/reconciler/decide/facts/facts.ts';
import { failed, planOf, PRIMARY, type Scene } from '../plan-fixture.ts';

const CRASHES = [5, 4, 3, 2, 1].map((minutes) => failed(minutes * 60_000, 'crash'));

/** Ready, Reconciling and Stalled, by their first letters: `T` true, `F` false, `U` unknown. */
function kstatus(scene: Scene): string {
  const conditions = planOf(scene).made.decisions.get(PRIMARY)?.conditions ?? [];
  const letter = (type: string): string => conditions.find((condition) => condition.type === type)?.status.charAt(0) ?? '-';
  return ['Ready', 'Reconciling', 'Stalled'].map(letter).join('');
}

const CASES: Readonly<Record<string, readonly [Scene, string]>> = {
  'that answers is ready and at rest': [{ workloads: [{ id: 'w1' }] }, 'TFF'],
  'that starts reconciles': [{}, 'FTF'],
  'that warms up reconciles': [{ workloads: [{ id: 'w1', probe: 'loading', seen: 10 }] }, 'FTF'],
  'that pulls reconciles': [{ model: 'pullable' }, 'FTF'],
  'that backs off reconciles': [{ failures: [failed(100, 'crash')] }, 'FTF'],
  'that is swapped is ready and reconciles': [{ workloads: [{ id: 'w0', revision: 'other' }] }, 'TTF'],
  'that unloads reconciles': [{ slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 1 }] }, 'FTF'],
  'that is disabled is at rest, and not stalled': [{ slot: { enabled: false } }, 'FFF'],
  'that is disabled is not stalled by what it lacks': [{ slot: { enabled: false }, model: 'missing' }, 'FFF'],
  'that waits for its first request is at rest, and not stalled': [{ slot: { load: 'on-demand' }, lastActive: undefined }, 'FFF'],
  'that was unloaded as idle is at rest, and not stalled': [{ slot: { lifecycle: { idleTimeout: '1s' } }, lastActive: 2000 }, 'FFF'],
  'that crashes repeatedly is stalled and does not reconcile': [{ failures: CRASHES }, 'FFT'],
  'whose model is missing is stalled': [{ model: 'missing' }, 'FFT'],
  'whose licence is not accepted is stalled': [{ model: 'pullable', refusal: 'Accept the licence' }, 'FFT'],
  'whose licence was accepted reconciles, although a pull was refused before': [
    { model: 'pullable', failures: [failed(2000, 'pull-model', 'LicenseNotAccepted', 'stalled')] },
    'FTF',
  ],
  'that has no memory is stalled': [{ budgetBytes: 10 }, 'FFT'],
  'whose new model is missing is stalled while the old one answers': [
    { failures: CRASHES, workloads: [{ id: 'w0', revision: 'other' }] },
    'TFT',
  ],
  'whose runtime is unreachable is unknown': [{ unreachable: 'No socket' }, 'UTF'],
};

describe('a slot', () => {
  for (const [sentence, [scene, expected]] of Object.entries(CASES)) {
    test(`${sentence}`, () => {
      expect(kstatus(scene)).toBe(expected);
    });
  }
});

test('a slot whose model is of unknown size says so, unless it reserves memory itself', () => {
  const messageOf = (scene: Scene) => {
    const decision = planOf({ modelBytes: 'unknown', workloads: [{ id: 'w1' }], ...scene }).made.decisions.get(PRIMARY);
    return [decision?.memoryBytes, decision?.conditions.find(({ type }) => type === 'UpToDate')?.message];
  };
  expect(messageOf({})).toEqual([undefined, expect.stringContaining('memory it needs is not known')]);
  expect(messageOf({ slot: { resources: { memory: '1Gi' } } })).toEqual([2 ** 30, 'The newest spec is in force']);
});

/** Status and reason of `UpToDate`. */
function upToDate(scene: Scene): string {
  const conditions = planOf(scene).made.decisions.get(PRIMARY)?.conditions ?? [];
  const found = conditions.find(({ type }) => type === 'UpToDate');
  return `${found?.status} ${found?.reason}`;
}

const UP_TO_DATE: Readonly<Record<string, readonly [Scene, string]>> = {
  'that answers with what its spec says is up to date': [{ workloads: [{ id: 'w1' }] }, 'True SpecInForce'],
  'that starts is not': [{}, 'False Starting'],
  'that warms up is not': [{ workloads: [{ id: 'w1', probe: 'loading', seen: 10 }] }, 'False Warming'],
  'that was just found and not probed yet is not': [{ workloads: [{ id: 'w1', probe: 'none' }] }, 'False Warming'],
  'that pulls its model is not': [{ model: 'pullable' }, 'False ModelNotPresent'],
  'whose old workload still answers is not': [{ workloads: [{ id: 'w0', revision: 'other' }] }, 'False PreviousServes'],
  'that crashes repeatedly is not': [{ failures: CRASHES }, 'False CrashLoop'],
  'that crashes repeatedly while its old workload answers is not': [
    { failures: CRASHES, workloads: [{ id: 'w0', revision: 'other' }] },
    'False CrashLoop',
  ],
  'whose model does not exist is not': [{ model: 'missing' }, 'False ModelMissing'],
  'without memory is not': [{ budgetBytes: 10 }, 'False InsufficientMemory'],
  'that was altered and is being restored is not': [{ workloads: [{ id: 'w1', altered: { argv: ['other'] } }] }, 'False WorkloadAltered'],
  'that was altered, which its spec tolerates, is up to date': [
    { slot: { lifecycle: { drift: 'warn' } }, workloads: [{ id: 'w1', altered: { argv: ['other'] } }] },
    'True SpecInForce',
  ],
  'that is disabled and stopped is up to date': [{ slot: { enabled: false } }, 'True Disabled'],
  'that is disabled and still stops is not': [{ slot: { enabled: false }, workloads: [{ id: 'w1', inFlight: 1 }] }, 'False Disabled'],
  'that waits for its first request is up to date': [{ slot: { load: 'on-demand' }, lastActive: undefined }, 'True NotAskedFor'],
  'that waits for its first request, but whose model does not exist, is not': [
    { slot: { load: 'on-demand' }, lastActive: undefined, model: 'missing' },
    'False ModelMissing',
  ],
  'that is disabled is up to date, whatever it lacks': [{ slot: { enabled: false }, model: 'missing' }, 'True Disabled'],
  'whose runtime is unreachable is unknown': [{ unreachable: 'No socket' }, 'Unknown RuntimeUnreachable'],
};

test('a slot that is off says what would keep it from being loaded', () => {
  const messageOf = (scene: Scene) => planOf(scene).made.decisions.get(PRIMARY)?.conditions[0]?.message;
  expect(messageOf({ slot: { enabled: false } })).toBe('Slot is off: "enabled" is false');
  expect(messageOf({ slot: { enabled: false }, model: 'missing' })).toMatch(/^Slot is off: "enabled" is false; it could not be loaded: /);
  expect(messageOf({ slot: { enabled: false }, model: 'pullable' })).toBe('Slot is off: "enabled" is false');
});

describe('UpToDate: a slot', () => {
  for (const [sentence, [scene, expected]] of Object.entries(UP_TO_DATE)) {
    test(`${sentence}`, () => {
      expect(upToDate(scene)).toBe(expected);
    });
  }

  test('whose text has a mistake is not up to date, although the last valid one serves', () => {
    const problems = [{ path: ['backend'], message: 'Use another one' }];
    expect(upToDate({ problems, workloads: [{ id: 'w1' }] })).toBe('False SpecInvalid');
  });
});

describe('stampConditions()', () => {
  const input: ConditionInput = { type: 'Ready', status: 'False', reason: 'Starting', message: 'The workload was started' };

  test('moves the time only when the status changes', () => {
    const first = stampConditions([input], [], 1, 1000);
    const second = stampConditions([{ ...input, reason: 'Warming' }], first, 1, 2000);
    const third = stampConditions([{ ...input, status: 'True' }], second, 2, 3000);
    expect([first, second, third].map(([condition]) => condition?.lastTransitionAt)).toEqual([1000, 1000, 3000]);
    expect([first, second, third].map(([condition]) => condition?.observedGeneration)).toEqual([1, 1, 2]);
  });

  test('returns the same object when nothing changed', () => {
    const first = stampConditions([input], [], 1, 1000);
    expect(stampConditions([input], first, 1, 2000)[0]).toBe(first[0]);
  });
});
