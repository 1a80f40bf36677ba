import { expect, test } from '@jest/globals';
import { memoizeFor } from '../../src/platform/memo.ts';

test('a result is remembered for its time, which begins before it is computed', () => {
  let now = 0;
  let looks = 0;
  const look = memoizeFor(
    10,
    () => {
      now += 4;
      return (looks += 1);
    },
    () => now,
  );
  expect([look(), look()]).toEqual([1, 1]);
  now = 9;
  expect(look()).toBe(1);
  now = 10;
  expect(look()).toBe(2);
});

test('a look that throws is made again', () => {
  let looks = 0;
  const failing = memoizeFor(
    10,
    () => {
      looks += 1;
      throw new Error('no');
    },
    () => 0,
  );
  expect(failing).toThrow('no');
  expect(failing).toThrow('no');
  expect(looks).toBe(2);
});
