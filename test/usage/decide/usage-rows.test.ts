import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { COUNTS, sliceRange, splitRange, sumUsage, type UsageRow } from '../../../src/usage/decide/usage-rows.ts';
import { PendingRows } from '../../../src/usage/pending-rows.ts';
import { slotName } from '../../gateway/support/board-fixture.ts';

const slot = slotName('primary');
const finished = { slot, caller: 'token:1a2b3c4d', route: '/v1/chat/completions', status: 200, seconds: 1 };

function rowsOf(...requests: readonly (readonly [object, number?, string?])[]): readonly UsageRow[] {
  const pending = new PendingRows();
  for (const [more, hour = 7, model = 'fox'] of requests) pending.add({ ...finished, ...more }, hour, { model });
  return pending.rows();
}

describe('sumUsage()', () => {
  const rows = rowsOf([{}, 30], [{}, 31], [{ caller: 'local' }, 31, 'owl'], [{}, 60]);
  test.each([
    [[], [{ requests: 4 }]],
    [
      ['day'],
      [
        { hour: 24, requests: 3 },
        { hour: 48, requests: 1 },
      ],
    ],
    [
      ['hour', 'token'],
      [{ hour: 30 }, { hour: 31, caller: 'local' }, { hour: 31, caller: 'token:1a2b3c4d' }, { hour: 60 }],
    ],
    [
      ['token', 'model'],
      [
        { caller: 'local', model: 'owl', requests: 1 },
        { caller: 'token:1a2b3c4d', model: 'fox', requests: 3 },
      ],
    ],
    [['slot'], [{ slot: 'primary', requests: 4 }]],
  ] as const)('groups by %j', (by, sums) => {
    expect(sumUsage(rows, by)).toMatchObject(sums);
  });

  test('adds up sums of the same question', () => {
    const once = sumUsage(rows, ['day', 'token']);
    const twice = sumUsage([...once, ...once], ['day', 'token']);
    expect(twice.map((sum) => COUNTS.map((count) => sum[count]))).toEqual(once.map((sum) => COUNTS.map((count) => 2 * sum[count])));
  });

  test('names no group that was not asked for', () => {
    expect(Object.keys(sumUsage(rows, ['slot'])[0] ?? {})).toEqual(['currency', 'slot', ...COUNTS]);
  });
});

test('splitRange() covers each hour once', () => {
  const hour = fc.integer({ min: 0, max: 200 });
  fc.assert(
    fc.property(hour, hour, fc.constantFrom(['day'] as const, ['hour'] as const, []), (from, to, by) => {
      const { hours, days } = splitRange({ from, to }, by);
      const parts = [...hours, { from: days.from * 24, to: days.to * 24 }];
      const covered = parts.flatMap((part) => Array.from({ length: Math.max(0, part.to - part.from) }, (_, index) => part.from + index));
      expect(covered.toSorted((one, other) => one - other)).toEqual(
        Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index),
      );
    }),
  );
});

test('sliceRange() covers each hour once, and cuts at ends of days', () => {
  const hour = fc.integer({ min: 0, max: 5000 });
  fc.assert(
    fc.property(hour, hour, fc.constantFrom(['day'] as const, ['hour'] as const, []), (from, to, by) => {
      const slices = sliceRange({ from, to }, by);
      expect([slices[0]?.from, slices.at(-1)?.to]).toEqual(from < to ? [from, to] : [undefined, undefined]);
      for (const [index, slice] of slices.entries()) {
        expect(slice.to).toBeGreaterThan(slice.from);
        if (index > 0) expect([slice.from, slice.from % 24]).toEqual([slices[index - 1]?.to, 0]);
      }
    }),
  );
});
