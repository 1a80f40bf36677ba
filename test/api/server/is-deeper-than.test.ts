import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isDeeperThan } from '../../../src/api/server/read-form.ts';

const depthOf = (value: unknown): number =>
  typeof value !== 'object' || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map((each) => depthOf(each)));

test.each([
  ['1', 0],
  ['"[[[["', 0],
  [String.raw`"\"[["`, 0],
  ['[]', 1],
  ['{"a":[{}]}', 3],
  ['[[],[],[[]]]', 3],
])('%s has %s levels', (text, levels) => {
  const limits = [levels - 1, levels].filter((limit) => limit >= 0);
  expect(limits.map((limit) => isDeeperThan(limit, text))).toEqual(limits.map((limit) => limit < levels));
});

test('agrees with a recursive count on any JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, levels) => {
      expect(isDeeperThan(levels, JSON.stringify(value))).toBe(depthOf(value) > levels);
    }),
  );
});
