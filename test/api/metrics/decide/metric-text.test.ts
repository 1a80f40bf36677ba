import { describe, expect, test } from '@jest/globals';
import { bucketOf, writeHead, writeHistogram, writeLabels, writeSample } from '../../../../src/api/metrics/decide/metric-text.ts';

test.each([
  ['below the first bound', 0.5, 0],
  ['on the first bound', 1, 0],
  ['just above it', 1.0000001, 1],
  ['in the middle', 3, 1],
  ['on the last bound', 10, 2],
  ['above the last bound', 10.5, 3],
  ['zero', 0, 0],
  ['the largest number', Number.MAX_VALUE, 3],
])('bucketOf(): %s', (_what, value, index) => {
  expect(bucketOf([1, 5, 10], value)).toBe(index);
});

test('bucketOf() of a histogram without bounds is the bucket without one', () => {
  expect(bucketOf([], 1)).toBe(0);
});

describe('labels and samples', () => {
  test.each([
    ['none', {}, ''],
    ['one', { slot: 'img' }, 'slot="img"'],
    ['several, in their order', { slot: 'img', code: '200' }, 'slot="img",code="200"'],
    ['an empty value', { slot: '' }, 'slot=""'],
    ['quotes, backslashes and line ends', { slot: 'a"b\\c\nd' }, 'slot="a\\"b\\\\c\\nd"'],
  ])('writeLabels(): %s', (_what, labels, text) => {
    expect(writeLabels(labels)).toBe(text);
  });

  test.each([
    ['without labels', '', 1, 'm 1'],
    ['with labels', 'slot="a"', 0.25, 'm{slot="a"} 0.25'],
    ['infinite', '', Number.POSITIVE_INFINITY, 'm +Inf'],
    ['infinite below zero', '', Number.NEGATIVE_INFINITY, 'm -Inf'],
    ['tiny', '', 1e-9, 'm 1e-9'],
  ])('writeSample(): %s', (_what, labels, value, text) => {
    expect(writeSample('m', labels, value)).toBe(text);
  });
});

test('writeHead() has the help with its odd characters escaped, and the type', () => {
  expect(writeHead({ name: 'm', help: 'A \\ and\na line', type: 'counter' })).toBe('# HELP m A \\\\ and\\na line\n# TYPE m counter');
});

test.each([
  [
    'with labels: buckets add up, and the last one has all',
    'slot="a"',
    ['m_bucket{le="1",slot="a"} 2', 'm_bucket{le="5",slot="a"} 2', 'm_bucket{le="10",slot="a"} 3', 'm_bucket{le="+Inf",slot="a"} 7'],
    ['m_sum{slot="a"} 61.5', 'm_count{slot="a"} 7'],
  ],
  [
    'without labels',
    '',
    ['m_bucket{le="1"} 2', 'm_bucket{le="5"} 2', 'm_bucket{le="10"} 3', 'm_bucket{le="+Inf"} 7'],
    ['m_sum 61.5', 'm_count 7'],
  ],
])('writeHistogram(): %s', (_what, labels, buckets, rest) => {
  const text = writeHistogram('m', labels, [1, 5, 10], { buckets: [2, 0, 1], sum: 61.5, count: 7 });
  expect(text.split('\n')).toEqual([...buckets, ...rest]);
});
