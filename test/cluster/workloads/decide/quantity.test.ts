import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isSameQuantity, parseQuantity } from '../../../../src/cluster/workloads/decide/apply-overlay.ts';
import { canonicalQuantity } from '../server-form.ts';

describe('isSameQuantity()', () => {
  test.each([
    ['1000m', '1'],
    ['0.5', '500m'],
    [2, '2'],
    ['1024Mi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['4000k', '4M'],
    ['1e3', '1k'],
    ['0.1', '100m'],
    ['0.1Gi', '107374182400m'],
    ['0', '0m'],
  ])('%j and %j are the same', (left, right) => expect(isSameQuantity(left, right)).toBe(true));

  test.each([
    ['1', '1m'],
    ['1G', '1Gi'],
    ['1001m', '1'],
    ['1', undefined],
    ['x', 'x'],
    ['', ''],
    [true, 1],
  ])('%j and %j are not', (left, right) => expect(isSameQuantity(left, right)).toBe(false));

  test('does not depend on the form in which a server stores it', () => {
    const quantity = fc.tuple(
      fc.integer({ min: 0, max: 99_999 }),
      fc.nat({ max: 999 }),
      fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi'),
    );
    fc.assert(
      fc.property(quantity, ([whole, part, unit]) => {
        const written = unit === 'm' ? `${whole}m` : `${whole}.${String(part).padStart(3, '0')}${unit}`;
        expect([written, isSameQuantity(written, canonicalQuantity(written))]).toEqual([written, true]);
      }),
    );
    expect(parseQuantity('1Ki')).toBe(1024);
  });
});
