/** A saved result and a new one: only ratios are compared, and only what is worse than the tolerance counts. */
import { describe, expect, test } from '@jest/globals';
import { compareResults } from '../../bench/decide/compare-results.ts';
import { readResults } from '../../bench/saved-results.ts';
import { kindOf, parseResults, warnOfKernel, type Goal, type Result } from '../../bench/decide/result.ts';
import { measurementsOf, resultOf } from './result-fixture.ts';

const goal = (part: Partial<Goal>): Goal => ({
  what: 'x',
  figure: '1.00 ×',
  goal: '≥ 1 ×',
  unit: '×',
  better: 'higher',
  value: 1,
  ...part,
});

describe('A ratio', () => {
  test.each<[string, Partial<Goal>, Partial<Goal>, number, readonly string[], number]>([
    ['the same', {}, {}, 1, [], 0],
    ['better', {}, { value: 2 }, 1, [], 0],
    ['worse within the tolerance', {}, { value: 0.91 }, 1, [], 0],
    ['worse', {}, { value: 0.89 }, 1, ['gateway: x: 0.89 ×, and was 1.00 × (at least 0.90 × would be accepted)'], 0],
    ['of costs, less', { better: 'lower' }, { better: 'lower', value: 0.5 }, 1, [], 0],
    ['of costs, more within the tolerance', { better: 'lower' }, { better: 'lower', value: 1.09 }, 1, [], 0],
    [
      'of costs, more',
      { better: 'lower' },
      { better: 'lower', value: 1.2 },
      1,
      ['gateway: x: 1.20 ×, and was 1.00 × (at most 1.10 × would be accepted)'],
      0,
    ],
    ['without a valid value now', {}, { value: undefined, figure: '0.5 × (invalid)' }, 0, [], 1],
    ['that is not measured any more', {}, { what: 'y' }, 0, [], 1],
    ['without a valid value before', { value: undefined }, { value: 0.1 }, 0, [], 0],
    ['in another unit', { unit: 'ms' }, { unit: 'ms', value: 0.1 }, 0, [], 0],
  ])('that is %s', (_name, earlier, later, compared, regressions, missing) => {
    const found = compareResults(measurementsOf([goal(earlier)]), measurementsOf([goal(later)]));
    expect(found).toMatchObject({ compared, regressions });
    expect(found.missing).toHaveLength(missing);
  });

  test('of a measurement that did not run is not missing', () => {
    expect(compareResults({ ...measurementsOf([goal({})]), plan: { goals: [goal({})], tables: [] } }, measurementsOf([goal({})]))).toEqual({
      compared: 1,
      regressions: [],
      missing: [],
    });
  });
});

test('a row with failed requests is a regression, also where nothing was saved before', () => {
  const row = { name: 'real service', requestsPerSecond: 1, failures: 3, validity: 'void' } as const;
  const now = { gateway: { goals: [], tables: [{ title: '600 B', against: 'nginx', rows: [row] }] } };
  expect(compareResults({}, now).regressions).toEqual(['gateway: 600 B: through "real service", 3 requests failed']);
});

test('results are read in the order of their dates, and other texts are refused', () => {
  const [early, late] = [resultOf({ savedAt: '2026-01-02T00:00:00.000Z' }), resultOf({ savedAt: '2026-01-10T00:00:00.000Z' })];
  expect(parseResults([JSON.stringify(late), JSON.stringify(early)])).toEqual([early, late]);
  expect(() => parseResults(['{}'])).toThrow();
});

test.each<[string, Parameters<typeof resultOf>[0], boolean]>([
  ['another minor version of Node', { machine: { node: '24.99.1' } }, true],
  ['another kernel, memory and load', { machine: { kernel: '9', memoryGb: 99, loadAverage: 3 } }, true],
  ['another processor', { machine: { cpu: 'another' } }, false],
  ['more cores', { machine: { cores: 64 } }, false],
  ['another major version of Node', { machine: { node: '26.1.0' } }, false],
])('a machine with %s: whether it is of the same kind', (_name, part, same) => {
  expect(kindOf(resultOf(part).machine) === kindOf(resultOf({}).machine)).toBe(same);
});

test('a table of another kernel is compared with a warning', () => {
  const [saved, measured] = [resultOf({}).machine, resultOf({ machine: { kernel: '9' } }).machine];
  expect(warnOfKernel(saved, saved)).toEqual([]);
  expect(warnOfKernel(saved, measured)).toEqual([expect.stringContaining('saved under "6.1.0", measured under "9"')]);
});

/** The last saved result of each measurement. */
const saved: Result['measurements'] = Object.assign({}, ...(await readResults()).map(({ measurements }) => measurements));
const ratios = Object.entries(saved).flatMap(([name, { goals }]) =>
  goals.flatMap((each) => (each.unit === '×' && each.value !== undefined ? [[name, each.what, each] as const] : [])),
);

test('the saved results agree with themselves', () => {
  expect(compareResults(saved, saved)).toEqual({ compared: ratios.length, regressions: [], missing: [] });
});

test.each(ratios)('%s: a planted regression of 15 %% is found in "%s"', (name, what, { value = 0, better }) => {
  const planted = { ...saved, [name]: withValue(saved[name], what, better === 'lower' ? value * 1.15 : value * 0.85) };
  expect(compareResults(saved, planted).regressions).toEqual([expect.stringContaining(`${name}: ${what}: `)]);
});

function withValue(measurement: Result['measurements'][string] | undefined, what: string, value: number) {
  const { goals = [], ...others } = measurement ?? { tables: [] };
  return { ...others, goals: goals.map((each) => (each.what === what ? { ...each, value } : each)) };
}
