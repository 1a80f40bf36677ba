import { describe, expect, test } from '@jest/globals';
import {
  bucketOf,
  formatFor,
  writeHead,
  writeHistogram,
  writeLabels,
  writeSample,
} from '../../../../src/api/metrics/decide/metric-text.ts';

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
  const head = { name: 'm_total', help: 'A "\\" and\na line', type: 'counter' } as const;
  expect(writeHead(head, 'prometheus')).toBe('# HELP m_total A "\\\\" and\\na line\n# TYPE m_total counter');
  expect(writeHead(head, 'openmetrics')).toBe('# HELP m A \\"\\\\\\" and\\na line\n# TYPE m counter');
  expect(writeHead({ ...head, type: 'gauge', help: '' }, 'openmetrics')).toBe('# HELP m_total \n# TYPE m_total gauge');
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

test('writeHistogram() has the exemplars of buckets, the last one included', () => {
  const exemplar = (value: number) => ({ traceId: 'ab', spanId: 'cd', value, at: 1_800_000_000_123 });
  const text = writeHistogram('m', '', [1, 5], { buckets: [2, 1], sum: 9, count: 4, exemplars: [exemplar(0.5), undefined, exemplar(6)] });
  expect(text.split('\n')).toEqual([
    'm_bucket{le="1"} 2 # {trace_id="ab",span_id="cd"} 0.5 1800000000.123',
    'm_bucket{le="5"} 3',
    'm_bucket{le="+Inf"} 4 # {trace_id="ab",span_id="cd"} 6 1800000000.123',
    'm_sum 9',
    'm_count 4',
  ]);
});

const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
const TEXT_FIRST = 'text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,*/*;q=0.1';
test.each([
  ['Prometheus', PROMETHEUS_2, 'openmetrics'],
  ['Prometheus, told to prefer text', TEXT_FIRST, 'prometheus'],
  ['no version', 'application/openmetrics-text', 'openmetrics'],
  ['odd spaces and letters', 'text/html , Application/OpenMetrics-Text ; Version=1.0.0 ; Q=1', 'openmetrics'],
  ['an old version', 'application/openmetrics-text;version=0.0.1', 'prometheus'],
  ['not wanted', 'application/openmetrics-text;q=0', 'prometheus'],
  ['nonsense as weight', 'application/openmetrics-text;q=x', 'prometheus'],
  ['a negative weight', 'application/openmetrics-text;q=-1', 'prometheus'],
  ['curl', '*/*', 'prometheus'],
  ['a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', 'prometheus'],
  ['nothing', undefined, 'prometheus'],
  ['16 KB', 'application/openmetrics-text,'.repeat(560), 'openmetrics'],
])('formatFor(): %s', (_what, accept, format) => {
  expect(formatFor(accept)).toBe(format);
});
