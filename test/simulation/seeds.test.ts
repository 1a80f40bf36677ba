import { expect, test } from '@jest/globals';
import { parseSeeds } from '../support/simulation/simulate-many.ts';

test('a corpus has a seed on each line, with the reason behind it', () => {
  expect(parseSeeds('# Explains\n\n3004470 # Recalled\n7\n')).toEqual([3_004_470, 7]);
  expect(() => parseSeeds('seven\n')).toThrow('"seven" is no seed');
});
