import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createMemo } from '../../src/platform/memo.ts';

describe('createMemo()', () => {
  test('computes once for as long as the inputs mean the same, and again when any part of one changes', () => {
    let computed = 0;
    const memo = createMemo((input: unknown) => ({ input, computed: (computed += 1) }));
    const slot = { name: 'primary', args: ['-c', '4096'], env: { A: '1' } };
    const first = memo.get('primary', slot);
    expect(memo.get('primary', structuredClone(slot))).toBe(first);
    expect(memo.get('primary', { ...slot, env: { A: '2' } })).not.toBe(first);
    expect(memo.get('primary', { ...slot, args: ['-c'] })).not.toBe(first);
    expect(memo.get('primary', { ...slot, more: undefined })).not.toBe(first);
    expect(computed).toBe(4);
  });

  test('keeps one result for each key, and forgets keys that are gone', () => {
    let computed = 0;
    const memo = createMemo((input: number) => (computed += input));
    memo.get('a', 1);
    memo.get('b', 1);
    memo.get('a', 1);
    memo.keepOnly(new Set(['b']));
    memo.get('b', 1);
    memo.get('a', 1);
    expect(computed).toBe(3);
  });

  test('answers what a computation without it would, whatever the inputs were before', () => {
    const compute = (...inputs: readonly unknown[]): string => JSON.stringify(inputs);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 1 }))), (calls) => {
        const memo = createMemo(compute);
        const sorted = (text: string): unknown => JSON.parse(text);
        for (const [key, one, other] of calls) expect(sorted(memo.get(key, one, other))).toEqual(sorted(compute(one, other)));
      }),
    );
  });
});
