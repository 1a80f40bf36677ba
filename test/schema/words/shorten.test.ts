import { expect, test } from '@jest/globals';
import { shorten } from '../../../src/schema/words/nearest-word.ts';

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'abc…'],
  ['', 0, ''],
  ['a', 0, '…'],
  ['ab😀', 4, 'ab😀'],
  ['ab😀c', 4, 'ab😀…'],
  ['ab😀c', 3, 'ab…'],
])('%j is shortened to %d as %j', (text, most, expected) => {
  expect(shorten(text, most)).toBe(expected);
});
