import { describe, expect, test } from '@jest/globals';
import { recallFailures, recordFailures } from '../../../../src/reconciler/decide/facts/recorded-failures.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import { hashUnscaled } from '../../../../src/reconciler/decide/facts/slot-edit.ts';
import { isCrashLoop, nextAttemptAt } from '../../../../src/reconciler/decide/rules/backoff.ts';
import { parseSlot, type SlotSpec } from '../../../../src/schema/slot/slot-spec.ts';
import { NOW, PRIMARY } from '../plan-fixture.ts';

const HOUR_MS = 3_600_000;
const attempt = (at: number, kind: Attempt['kind'] = 'crash'): Attempt => ({
  at,
  kind,
  failure: { kind: 'retry', reason: 'Crashed', message: `It failed at ${at}` },
});
const record = (failures: readonly Attempt[], wallNow: number) => recordFailures(failures, [], wallNow).map(({ failure }) => failure);

describe('recordFailures()', () => {
  test('records what counts towards a crash loop, with the time of the wall clock', () => {
    const failures = (['crash', 'apply', 'probe', 'vanish', 'start-timeout', 'pull-model'] as const).map((kind, at) => attempt(at, kind));
    expect(record(failures, NOW)).toEqual([
      { at: NOW, kind: 'crash', reason: 'Crashed', message: 'It failed at 0' },
      { at: NOW, kind: 'probe', reason: 'Crashed', message: 'It failed at 2' },
      { at: NOW, kind: 'start-timeout', reason: 'Crashed', message: 'It failed at 4' },
    ]);
  });

  test('keeps the time at which a failure was first recorded, here or by an earlier controller', () => {
    const first = recordFailures([attempt(1)], [], NOW);
    const second = recordFailures([attempt(1), attempt(2)], first, NOW + 500);
    expect(second.map(({ failure }) => failure.at)).toEqual([NOW, NOW + 500]);
    expect(record([{ ...attempt(1), recordedAt: 7 }], NOW)[0]?.at).toBe(7);
  });

  test('records each of several failures that happened at the same time', () => {
    const recalled = [7, 8, 9].map((recordedAt) => ({ ...attempt(1), recordedAt }));
    const first = recordFailures([...recalled, attempt(1), attempt(1, 'probe')], [], NOW);
    const second = recordFailures([...recalled, attempt(1), attempt(1, 'probe'), attempt(1, 'start-timeout')], first, NOW + 500);
    expect(second.map(({ failure }) => [failure.kind, failure.at])).toEqual([
      ['crash', 7],
      ['crash', 8],
      ['crash', 9],
      ['crash', NOW],
      ['probe', NOW],
      ['start-timeout', NOW + 500],
    ]);
  });

  test('records the newest ten, and not more than a part of a long message', () => {
    const many = Array.from({ length: 30 }, (_, at) => attempt(at));
    expect(record(many, NOW).map(({ message }) => message)).toEqual(many.slice(20).map(({ failure }) => failure.message));
    const long = { ...attempt(1), failure: { ...attempt(1).failure, message: 'x'.repeat(10_000) } };
    expect(record([long], NOW)[0]?.message.length).toBeLessThan(1000);
  });
});

describe('recallFailures()', () => {
  const specOf = (document: object): SlotSpec => {
    const parsed = parseSlot(PRIMARY, { model: { default: 'a.gguf' }, ...document });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    return parsed.spec;
  };
  const slots = (generation: number, document = {}) => new Map([[PRIMARY, { generation, spec: specOf(document) }]]);
  const recall = (ages: readonly number[], { now = 50, wallNow = NOW, generation = 3 } = {}): readonly Attempt[] => {
    const failures = ages.map((age) => ({ at: NOW - age, kind: 'crash', reason: 'Crashed', message: 'It ended' }) as const);
    return (
      recallFailures(new Map([[PRIMARY, { observedGeneration: 3, failures }]]), slots(generation), { now, wallNow }).get(PRIMARY) ?? []
    );
  };

  test('moves failures to the clock of the new controller, with their distances', () => {
    expect(recall([2000, 1000]).map(({ at, recordedAt }) => [at, recordedAt])).toEqual([
      [50 - 2000, NOW - 2000],
      [50 - 1000, NOW - 1000],
    ]);
  });

  test('recalls nothing of another generation, or of a slot that is gone', () => {
    expect(recall([1000], { generation: 4 })).toEqual([]);
    expect(recallFailures(new Map([[PRIMARY, { observedGeneration: 3 }]]), slots(3), { now: 0, wallNow: NOW })).toEqual(new Map());
  });

  test.each([
    ['only its replicas were edited meanwhile', { replicas: 3 }, 1],
    ['anything else was edited meanwhile', { lifecycle: { startTimeout: '10m' } }, 0],
    ['something else was edited together with its replicas', { replicas: 3, priority: 1 }, 0],
  ])('recalls the failures of an earlier generation where %s: %j', (_name, document, count) => {
    const failures = [{ at: NOW, kind: 'crash', reason: 'Crashed', message: 'It ended' }] as const;
    const record = { observedGeneration: 3, failures, failedSpec: hashUnscaled(specOf({ replicas: 1 })) };
    const recalled = recallFailures(new Map([[PRIMARY, record]]), slots(4, document), { now: 0, wallNow: NOW });
    expect(recalled.get(PRIMARY)?.length ?? 0).toBe(count);
  });

  test.each([
    ['the same object, edited back', 'uid-1', {}, 1],
    ['another object with the same spec and generation', 'uid-2', {}, 0],
    ['another object of the same generation', 'uid-2', { priority: 1 }, 0],
    ['another spec of the same generation', 'uid-1', { priority: 1 }, 0],
  ])('recalls of %s what is its own', (_name, uid, document, count) => {
    const failures = [{ at: NOW, kind: 'crash', reason: 'Crashed', message: 'It ended' }] as const;
    const record = { observedGeneration: 3, failures, failedSpec: hashUnscaled(specOf({}), 'uid-1') };
    const declared = new Map([[PRIMARY, { uid, generation: 3, spec: specOf(document) }]]);
    const recalled = recallFailures(new Map([[PRIMARY, record]]), declared, { now: 0, wallNow: NOW });
    expect(recalled.get(PRIMARY)?.length ?? 0).toBe(count);
  });

  test('still knows a crash loop after the wall clock was set forward or back', () => {
    const ages = [40_000, 30_000, 20_000, 10_000, 0];
    for (const step of [0, 1000 * HOUR_MS, -15_000, -1000 * HOUR_MS]) {
      const failures = recall(ages, { wallNow: NOW + step });
      expect([step, isCrashLoop(failures)]).toEqual([step, true]);
      expect(nextAttemptAt(failures)).toBeLessThanOrEqual(50 + 300_000);
    }
    expect(isCrashLoop(recall([4, 3, 2, 1, 0].map((hours) => hours * HOUR_MS)))).toBe(false);
  });
});
