import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { delayAfter, finalFailure, isCrashLoop, nextAttemptAt } from '../../../../src/reconciler/decide/rules/backoff.ts';
import type { AttemptKind } from '../../../../src/reconciler/decide/facts/actions.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import type { Reason } from '../../../../src/schema/status/reasons.ts';

const attempt = (at: number, kind: AttemptKind = 'crash', reason: Reason = 'Crashed'): Attempt => ({
  at,
  kind,
  failure: { kind: 'retry', reason, message: 'It failed' },
});

describe('delayAfter()', () => {
  test('doubles from one second to five minutes', () => {
    expect([1, 2, 3, 4, 8, 9, 10, 100].map(delayAfter)).toEqual([1000, 2000, 4000, 8000, 128_000, 256_000, 300_000, 300_000]);
  });

  test('never decreases, and never exceeds five minutes', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000 }), (failures) => {
        expect(delayAfter(failures + 1)).toBeGreaterThanOrEqual(delayAfter(failures));
        expect(delayAfter(failures)).toBeLessThanOrEqual(300_000);
      }),
    );
  });
});

describe('nextAttemptAt()', () => {
  test('is undefined without a failure', () => {
    expect(nextAttemptAt([])).toBeUndefined();
  });

  test('counts from the last failure', () => {
    expect(nextAttemptAt([attempt(1000), attempt(50_000)])).toBe(52_000);
  });

  test('is the time that a waiting failure names', () => {
    const waiting: Attempt = { at: 1, kind: 'apply', failure: { kind: 'waiting', reason: 'ApiBusy', message: 'Later', until: 777 } };
    expect(nextAttemptAt([waiting])).toBe(777);
  });

  test('is undefined for a few taken ports, and backs off after that', () => {
    const taken = (count: number): Attempt[] => Array.from({ length: count }, (_, index) => attempt(index, 'apply', 'PortTaken'));
    expect(nextAttemptAt(taken(8))).toBeUndefined();
    expect(nextAttemptAt(taken(9))).toBe(8 + 1000);
    expect(nextAttemptAt(taken(12))).toBe(11 + 8000);
  });
});

describe('isCrashLoop()', () => {
  const times = fc.array(fc.nat({ max: 3_600_000 }), { maxLength: 12 }).map((all) => all.toSorted((a, b) => a - b));

  test('is five crashes within ten minutes', () => {
    expect(isCrashLoop([0, 1, 2, 3].map((at) => attempt(at)))).toBe(false);
    expect(isCrashLoop([0, 1, 2, 3, 600_000].map((at) => attempt(at)))).toBe(true);
    expect(isCrashLoop([0, 1, 2, 3, 600_001].map((at) => attempt(at)))).toBe(false);
  });

  test('remains true whatever happens later', () => {
    fc.assert(
      fc.property(times, times, (before, after) => {
        const failures = before.map((at) => attempt(at));
        const more = after.map((at) => attempt(3_600_000 + at));
        expect(isCrashLoop([...failures, ...more]) || !isCrashLoop(failures)).toBe(true);
      }),
    );
  });

  test('does not count failures that are not the fault of the server', () => {
    const kinds = ['apply', 'vanish', 'pull-image', 'pull-model'] as const;
    for (const kind of kinds) expect(isCrashLoop([0, 1, 2, 3, 4, 5].map((at) => attempt(at, kind)))).toBe(false);
  });
});

describe('finalFailure()', () => {
  const stalled = (kind: AttemptKind): Attempt => ({
    at: 0,
    kind,
    failure: { kind: 'stalled', reason: 'ModelMissing', message: 'No such thing' },
  });

  test('no longer counts a failed pull once its image or model is present', () => {
    expect(finalFailure([stalled('pull-image')], { image: false, model: true })).toBeDefined();
    expect(finalFailure([stalled('pull-image')], { image: true, model: false })).toBeUndefined();
    expect(finalFailure([stalled('pull-model')], { image: false, model: true })).toBeUndefined();
    expect(finalFailure([stalled('apply')], { image: true, model: true })).toBeDefined();
  });
});
