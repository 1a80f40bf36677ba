/** One core is for the proxy under test, and the others are for everything else. */
import { expect, test } from '@jest/globals';
import { shareCores } from '../../bench/decide/share-cores.ts';

test.each([
  ['0-1', { proxy: '0', load: '1' }],
  ['0-3', { proxy: '0', load: '1,2,3' }],
  ['2,5-6', { proxy: '2', load: '5,6' }],
  ['0', undefined],
  ['', undefined],
  ['0-x', undefined],
])('of the cores "%s"', (allowed, cores) => {
  expect(shareCores(allowed)).toEqual(cores);
});
