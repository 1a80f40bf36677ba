import { expect, test } from '@jest/globals';
import { quietRestMs } from '../../src/files/watch-directory.ts';

test.each([
  ['was written now', 1000, 10],
  ['was written in this millisecond, of which the clock does not know the fraction', 1000.75, 10],
  ['was written three milliseconds ago', 997, 7],
  ['was written a quiet period ago', 990, 0],
  ['is old', 0, -990],
  ['is from the future', 1001, 0],
  ['is from a future far away', 100_000, 0],
])('a file that %s', (_what, writtenAt, expected) => {
  expect(quietRestMs(writtenAt, 1000, 10)).toBe(expected);
});
