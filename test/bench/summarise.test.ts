/** What the runs of a proxy say, when they say nothing, and how two proxies compare. */
import { describe, expect, test } from '@jest/globals';
import { doubtOf, ratioOfRuns, summarise, type Run } from '../../bench/decide/summarise.ts';

const run = (part: Partial<Run> = {}): Run => ({
  requests: 1000,
  failures: 0,
  requestsPerSecond: 500,
  medianUs: 100,
  cpu: 0.0001,
  busy: 0.95,
  ...part,
});
const strict = { mayWait: false };

describe('The summary of a proxy', () => {
  test('has the medians of its runs, and all failures', () => {
    const runs = [
      run({ requestsPerSecond: 1, cpu: 3e-6 }),
      run({ requestsPerSecond: 9, cpu: 1e-6 }),
      run({ requestsPerSecond: 2, cpu: 2e-6 }),
    ];
    expect(summarise('nginx', runs, strict)).toEqual({
      name: 'nginx',
      requestsPerSecond: 2,
      cpuUs: 2,
      busy: 0.95,
      failures: 0,
      validity: 'valid',
    });
    expect(summarise('nginx', [run({ failures: 2 }), run({ failures: 1 })], strict).failures).toBe(3);
  });

  test('has no CPU time where none is measured', () => {
    expect(summarise('upstream alone', [run({ cpu: Number.NaN, busy: Number.NaN })], strict)).toMatchObject({
      cpuUs: undefined,
      busy: undefined,
      validity: 'valid',
    });
  });

  test.each<[string, Partial<Run>[], { mayWait: boolean }, string]>([
    ['all of its core', [{ busy: 1 }], strict, 'valid'],
    ['just enough of its core', [{ busy: 0.85 }], strict, 'valid'],
    ['too little of its core', [{ busy: 0.849 }], strict, 'waited'],
    ['too little of its core in one of three runs', [{ busy: 0.2 }, {}, {}], strict, 'valid'],
    ['too little of its core, where it may wait', [{ busy: 0.2 }], { mayWait: true }, 'valid'],
    ['one failure in one of three runs', [{ failures: 1 }, {}, {}], strict, 'void'],
    ['a failure, and too little of its core', [{ failures: 1, busy: 0.2 }], strict, 'void'],
    ['a failure, where it may wait', [{ failures: 1 }], { mayWait: true }, 'void'],
    ['no answer at all', [{ requests: 0, requestsPerSecond: 0, cpu: Infinity }], strict, 'void'],
    ['no run at all', [], strict, 'void'],
  ])('with %s is judged', (_name, parts, options, validity) => {
    expect(summarise('nginx', parts.map(run), options).validity).toBe(validity);
  });
});

describe('A ratio', () => {
  test('is the median of the ratios within each round, so that a slow round does not count', () => {
    const mine = [run({ requestsPerSecond: 30 }), run({ requestsPerSecond: 3 }), run({ requestsPerSecond: 40 })];
    const other = [run({ requestsPerSecond: 100 }), run({ requestsPerSecond: 10 }), run({ requestsPerSecond: 100 })];
    expect(ratioOfRuns(mine, other, (each) => each.requestsPerSecond)).toBeCloseTo(0.3);
  });

  test.each<[string, Partial<Run>, Partial<Run>, 'throughput' | 'cpu', string | undefined]>([
    ['two valid rows', {}, {}, 'throughput', undefined],
    ['a row that waited', {}, { busy: 0.5 }, 'throughput', 'invalid: "other" had 50 % of its core'],
    ['CPU times of a row that waited', { busy: 0.5 }, {}, 'cpu', undefined],
    ['a row with a failure', { failures: 7 }, {}, 'throughput', 'void: through "mine", 7 requests failed'],
    ['CPU times of a row with a failure', {}, { failures: 7 }, 'cpu', 'void: through "other", 7 requests failed'],
    ['a row without answers', { requests: 0 }, {}, 'cpu', 'void: through "mine", nothing was answered'],
  ])('of %s: the doubt about it', (_name, mine, other, what, doubt) => {
    const both = [summarise('mine', [run(mine)], strict), summarise('other', [run(other)], strict)];
    expect(doubtOf(both, what)).toBe(doubt);
  });
});
