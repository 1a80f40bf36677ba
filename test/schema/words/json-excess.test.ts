import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonExcess } from '../../../src/schema/words/json-skipper.ts';

const depthOf = (value: unknown): number =>
  typeof value !== 'object' || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map((each) => depthOf(each)));
const isDeeperThan = (levels: number, text: string): boolean => jsonExcess(text, { levels }) !== undefined;
const isWiderThan = (values: number, text: string): boolean => jsonExcess(text, { values }) !== undefined;

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

/** Values beside the first one of each array and object, and the arrays and objects themselves. */
function widthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  return 1 + Math.max(0, inner.length - 1) + inner.reduce((sum: number, each) => sum + widthOf(each), 0);
}

test('counts the values of any JSON, however its strings look', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(40), (value, values) => {
      expect(isWiderThan(values, JSON.stringify(value))).toBe(widthOf(value) > values);
    }),
  );
});

test.each([
  ['too many empty objects', `[${'{},'.repeat(200_000)}{}]`, 'values'],
  ['too many numbers', `[${'1,'.repeat(200_000)}1]`, 'values'],
  ['too many levels', `${'['.repeat(200)}${']'.repeat(200)}`, 'levels'],
])('JSON with %s is not parsed', (_what, text, found) => {
  expect(jsonExcess(text)).toContain(found);
});

test.each([['{"a":"b\\'], ['"'], ['{"a":"\\\\\\"'], [']]]]'], ['']])('%j, which is no JSON, gets an answer', (text) => {
  expect(jsonExcess(text)).toBeUndefined();
});
