import { describe, expect, test } from '@jest/globals';
import {
  parseTraffic,
  formatTraffic,
  composeReport,
  reportDueAt,
  type TrafficReport,
} from '../../../../src/cluster/leadership/decide/traffic-report.ts';
import { SlotName } from '../../../../src/schema/words/names.ts';
import { factsOf, reportOf, type Pairs } from './traffic-fixture.ts';

const NOW = 1_000_000_000_000;
const RENEW_MS = 30_000;

describe('composeReport()', () => {
  test('reports ages instead of times, so that clocks may differ', () => {
    const facts = factsOf({ chat: [2, NOW - 50] }, { w1: [1, NOW - 3000], w2: [0, NOW - 70_000] });
    expect(composeReport(facts, NOW)).toEqual(reportOf({ chat: [2, 50] }, { w1: [1, 3000], w2: [0, 70_000] }));
  });

  test('says whose request waits, of at most 100 slots, and with at most 200 characters', () => {
    const waits = (index: number, caller: string | undefined) =>
      [SlotName.parse(`s${index}`), { waiting: 1, lastAskedAt: NOW - index, caller }] as const;
    const demand = new Map([
      waits(0, undefined),
      ...Array.from({ length: 200 }, (_, index) => waits(index + 1, `user:${'x'.repeat(300)}`)),
    ]);
    const report = composeReport({ demand, workloads: new Map() }, NOW);
    expect([...report.callers.values()]).toEqual(Array.from({ length: 100 }, () => `user:${'x'.repeat(195)}`));
    expect(parseTraffic(formatTraffic(report))).toEqual(report);
  });

  test('reads reports of earlier versions, and leaves out callers that cannot be', () => {
    const read = (more: object) => parseTraffic(JSON.stringify({ version: 1, demand: { chat: [1, 0] }, use: {}, ...more }));
    expect(read({})).toEqual(reportOf({ chat: [1, 0] }));
    expect(read({ callers: { chat: 5 } })).toEqual(reportOf({ chat: [1, 0] }));
    expect(read({ callers: { chat: 'x'.repeat(201) } })).toEqual(reportOf({ chat: [1, 0] }));
    expect(read({ callers: { chat: 'token:1' } })).toEqual(reportOf({ chat: [1, 0] }, {}, { chat: 'token:1' }));
  });

  test('says how many requests have ended and failed on each workload, in the order of its keys', () => {
    const { demand, workloads } = factsOf({}, { w: [0, NOW - 20], '7': [0, NOW - 10], idle: [0, NOW - 5] });
    const results = { w: [30, 2], '7': [5, 0] } as const;
    const counted = new Map(
      [...workloads].map(([id, activity]) => {
        const [ended, failed] = id === 'w' ? results.w : id === '7' ? results['7'] : [undefined, undefined];
        return [id, { ...activity, ended, failed }] as const;
      }),
    );
    const report = composeReport({ demand, workloads: counted }, NOW);
    expect(report).toEqual(reportOf({}, { idle: [0, 5], '7': [0, 10], w: [0, 20] }, {}, results));
    expect(parseTraffic(formatTraffic(report))).toEqual(report);
    const misfit = formatTraffic(report).replace('"results":[', '"results":[[9,9],');
    expect(parseTraffic(misfit)?.results.size).toBe(0);
  });

  test('reports no negative ages after the clock was set back', () => {
    expect(composeReport(factsOf({ chat: [1, NOW + 5000] }), NOW)).toEqual(reportOf({ chat: [1, 0] }));
  });

  test('omits old activity unless it is still going on', () => {
    const old = NOW - 3_600_000;
    const facts = factsOf({ gone: [0, old], waits: [1, old] }, { idle: [0, old], long: [1, old] });
    expect(composeReport(facts, NOW)).toEqual(reportOf({ waits: [1, 3_600_000] }, { long: [1, 3_600_000] }));
  });

  test('reports at most 2,000 of each, within the size limit of an annotation, the busy and the most recent first', () => {
    const name = (index: number): string => `slot-with-a-name-of-40-characters-0-${1000 + index}`;
    const demand: Pairs = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [name(index), [0, NOW - 1000 - index]]));
    const use: Pairs = Object.fromEntries(
      Array.from({ length: 3000 }, (_, index) => [
        `6f1e2b1c-0000-4000-8000-00000000${1000 + index}`,
        [index === 2999 ? 1 : 0, NOW - 1000 - index],
      ]),
    );
    const report = composeReport(factsOf(demand, use), NOW);
    expect([report.demand.size, report.use.size]).toEqual([2000, 2000]);
    expect(Math.max(...[...report.demand.values()].map(({ agoMs }) => agoMs))).toBe(1000 + 1999);
    expect([...report.use.values()].filter(({ count }) => count > 0)).toHaveLength(1);
    expect(formatTraffic(report).length).toBeLessThan(200 * 1024);
    expect(parseTraffic(formatTraffic(report))).toEqual(report);
  });
});

describe('reportDueAt()', () => {
  const at = 100_000;
  const last = (demand: Pairs, use: Pairs = {}): { at: number; report: TrafficReport } => ({ at, report: reportOf(demand, use) });
  // Half a second after the last report: older activity happened before it.
  const now = at + 500;

  test('is now before the first report', () => {
    expect(reportDueAt(undefined, reportOf(), now, RENEW_MS)).toBe(now);
  });

  test.each([
    ['demand that begins: a second after the last report', last({}), reportOf({ chat: [1, 10] }), 1000],
    ['demand that begins again', last({ chat: [0, 9] }), reportOf({ chat: [1, 10] }), 1000],
    ['demand of a second slot', last({ chat: [1, 9] }), reportOf({ chat: [1, 510], embed: [1, 10] }), 1000],
    ['more of the demand that is known: ten seconds', last({ chat: [1, 9] }), reportOf({ chat: [5, 10] }), 10_000],
    ['demand that ends', last({ chat: [1, 9] }), reportOf({ chat: [0, 509] }), 10_000],
    ['a request for a slot that is open', last({ chat: [0, 9] }), reportOf({ chat: [0, 10] }), 10_000],
    ['use that begins', last({}), reportOf({}, { w: [1, 10] }), 10_000],
    ['use that ends', last({}, { w: [1, 9] }), reportOf({}, { w: [0, 10] }), 10_000],
    ['use that continues', last({}, { w: [1, 9] }), reportOf({}, { w: [3, 10] }), 10_000],
    ['one long request: the renewal', last({}, { w: [1, 9] }), reportOf({}, { w: [1, 509] }), 30_000],
    ['the same as before', last({ chat: [2, 9] }, { w: [0, 9] }), reportOf({ chat: [2, 509] }, { w: [0, 509] }), 30_000],
    ['activity that is no longer reported: rarely', last({ chat: [0, 9] }, { w: [0, 9] }), reportOf(), 120_000],
    ['nothing at all: rarely', last({}), reportOf(), 120_000],
  ])('%s', (_what, before, next, expected) => {
    expect(reportDueAt(before, next, now, RENEW_MS) - at).toBe(expected);
  });

  test('is never later than the renewal', () => {
    expect(reportDueAt(last({}), reportOf({}, { w: [1, 10] }), now, 4000)).toBe(at + 4000);
  });
});

describe('parseTraffic()', () => {
  test.each([
    undefined,
    '',
    'null',
    '{',
    '{"version":2,"demand":{},"use":{}}',
    '{"version":1,"demand":{}}',
    '{"version":1,"demand":{"chat":[1]},"use":{}}',
    '{"version":1,"demand":{"../chat":[1,2]},"use":{}}',
    '{"version":1,"demand":{"chat":[-1,2]},"use":{}}',
    '{"version":1,"demand":{"chat":[1,1e300]},"use":{}}',
    '{"version":1,"demand":{"chat":["1",2]},"use":{}}',
    '{"version":1,"demand":{},"use":{"":[1,2]}}',
    JSON.stringify({ version: 1, demand: {}, use: Object.fromEntries(Array.from({ length: 2001 }, (_, index) => [`w${index}`, [0, 0]])) }),
  ])('rejects %.60s', (text) => {
    expect(parseTraffic(text)).toBeUndefined();
  });

  test('accepts a report to which a later version has added keys', () => {
    expect(parseTraffic('{"version":1,"demand":{"chat":[1,2]},"use":{"w":[3,4]},"more":1}')).toEqual(
      reportOf({ chat: [1, 2] }, { w: [3, 4] }),
    );
  });
});
