import { describe, expect, test } from '@jest/globals';
import {
  cachedShare,
  isRequestShown,
  percentilesOf,
  requestsCsv,
  withNewer,
  type RequestRow,
} from '../../dashboard/src/decide/request-rows.ts';
import { barMarks, measureText, stepOf, usageBars, type Measure } from '../../dashboard/src/decide/usage-bars.ts';
import type { TimelineEntry } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { usageRow } from './rows.ts';

const row = (more: Partial<RequestRow> = {}): RequestRow => ({
  number: 1,
  id: 'req-1',
  at: '2026-11-28T06:00:00.000Z',
  caller: 'token:1a2b3c4d',
  slot: null,
  route: '/v1/chat/completions',
  status: 200,
  code: null,
  because: null,
  seconds: 1.5,
  first_seconds: 0.25,
  parked_seconds: null,
  input_tokens: 30,
  cached_tokens: 20,
  output_tokens: 12,
  tokens_per_second: 9.6,
  why: null,
  ...more,
});

describe('the list of requests', () => {
  test('has new ones in front, each once, and no more than the service remembers', () => {
    const known = [row({ number: 5 }), row({ number: 4 })];
    expect(withNewer(known, [row({ number: 6 }), row({ number: 5 })]).map(({ number }) => number)).toEqual([6, 5, 4]);
    expect(withNewer(known, [])).toEqual(known);
    const many = Array.from({ length: 1200 }, (_, index) => row({ number: 1200 - index }));
    expect(withNewer([], many)).toHaveLength(1000);
  });

  test.each([
    ['all', '', 'abc'],
    ['troubled', '', 'bc'],
    ['failed', '', 'c'],
    ['all', 'slow.one', ''],
    ['all', 'LOAD', 'b'],
    ['all', 'chat 404', 'c'],
    ['all', 'model.unknown', 'c'],
    ['failed', 'load', ''],
  ] as const)('with "%s" and "%s" shows "%s"', (shown, search, expected) => {
    const rows = [
      row({ id: 'a' }),
      row({ id: 'b', because: 'slow', why: { cause: 'load', message: 'It waited' } }),
      row({ id: 'c', because: 'failed', status: 404, code: 'model.unknown' }),
    ];
    expect(
      rows
        .filter((each) => isRequestShown(each, { shown, search }))
        .map(({ id }) => id)
        .join(''),
    ).toBe(expected);
  });

  test('has percentiles of what is known of requests that did not fail', () => {
    const rows = Array.from({ length: 200 }, (_, index) => row({ first_seconds: 200 - index }));
    const failed = row({ because: 'failed', first_seconds: 9000 });
    expect(percentilesOf([...rows, failed, row({ first_seconds: null })], (each) => each.first_seconds)).toEqual({
      p50: 100,
      p95: 190,
      p99: 198,
    });
    expect(percentilesOf([row({ first_seconds: 2 })], (each) => each.first_seconds)).toEqual({ p50: 2, p95: 2, p99: 2 });
    expect(percentilesOf([failed], (each) => each.first_seconds)).toBeUndefined();
  });

  test('says which part of the input was cached, where the server says so', () => {
    expect(cachedShare(row())).toBe('67 %');
    expect(cachedShare(row({ cached_tokens: 0 }))).toBe('0 %');
    expect(cachedShare(row({ cached_tokens: 99 }))).toBe('100 %');
    for (const more of [{ cached_tokens: null }, { input_tokens: null }, { input_tokens: 0 }])
      expect(cachedShare(row(more))).toBeUndefined();
  });

  test('as CSV quotes what must be quoted, and has no formulas', () => {
    const [head, first, second, end] = requestsCsv([row({ caller: '=cmd|"a"!b', code: 'a,b' }), row({ caller: null })]).split('\r\n');
    expect(head).toBe(
      'at,id,caller,slot,route,status,code,seconds,parked_seconds,first_seconds,input_tokens,cached_tokens,output_tokens,tokens_per_second,cause',
    );
    expect(first).toBe(`2026-11-28T06:00:00.000Z,req-1,"'=cmd|""a""!b",,/v1/chat/completions,200,"a,b",1.5,,0.25,30,20,12,9.6,`);
    expect(second).toBe('2026-11-28T06:00:00.000Z,req-1,,,/v1/chat/completions,200,,1.5,,0.25,30,20,12,9.6,');
    expect(end).toBe('');
  });
});

describe('usage over time', () => {
  const usage = (time: string, requests: number) => usageRow({ time, requests, output_tokens: 2 * requests });

  test('has a bar for each hour, also where there was nothing', () => {
    const report = {
      since: '2026-11-28T04:00:00.000Z',
      until: '2026-11-28T07:00:00.000Z',
      usage: [usage('2026-11-28T06:00:00.000Z', 3), usage('2026-11-28T04:00:00.000Z', 1), usage('2026-11-28T04:00:00.000Z', 1)],
    };
    expect(usageBars(report, 'hour', 'requests').map(({ value }) => value)).toEqual([2, 0, 3]);
    expect(usageBars(report, 'hour', 'output_tokens').map(({ value }) => value)).toEqual([4, 0, 6]);
    expect(new Date(usageBars(report, 'hour', 'requests')[2]?.at ?? 0).toISOString()).toBe('2026-11-28T06:00:00.000Z');
  });

  test('measures a speed and a wait by all of an hour, not by the mean of its rows', () => {
    const at = '2026-11-28T04:00:00.000Z';
    const report = {
      since: at,
      until: '2026-11-28T06:00:00.000Z',
      usage: [
        usageRow({ time: at, requests: 1, output_tokens: 10, busy_seconds: 1, queue_seconds: 4, energy_wh: 0.5 }),
        usageRow({ time: at, requests: 3, output_tokens: 390, busy_seconds: 9, queue_seconds: 0 }),
      ],
    };
    const first = (measure: Measure): number | undefined => usageBars(report, 'hour', measure)[0]?.value;
    expect([first('speed'), first('queue'), first('energy'), first('loads')]).toEqual([40, 1, 0.5, 0]);
    // Nothing was asked.
    expect([usageBars(report, 'hour', 'speed')[1]?.value, usageBars(report, 'hour', 'queue')[1]?.value]).toEqual([0, 0]);
    expect([measureText('speed', 40.4), measureText('queue', 1.5), measureText('energy', 0.5)]).toEqual(['40', '1.5 s', '~0.50 Wh']);
  });

  test('has one for each day of a longer range, of which the first may have begun before', () => {
    const report = { since: '2026-11-26T07:00:00.000Z', until: '2026-11-28T07:00:00.000Z', usage: [usage('2026-11-26T00:00:00.000Z', 3)] };
    expect(usageBars(report, 'day', 'requests').map(({ value }) => value)).toEqual([3, 0, 0]);
    expect([stepOf(1), stepOf(24), stepOf(720)]).toEqual(['hour', 'hour', 'day']);
  });

  test('is marked with swaps, new revisions and failures, by bar, and with nothing else', () => {
    const bars = [0, 1, 2].map((hour) => ({ at: Date.parse('2026-11-28T04:00:00.000Z') + hour * 3_600_000, value: 0 }));
    const entry = (at: string | null, kind: TimelineEntry['kind'], message: string): TimelineEntry => ({
      seq: 1,
      at: at === null ? null : `2026-11-28T${at}:00.000Z`,
      slot: SlotName.parse('primary'),
      kind,
      message,
      cause: null,
      from: null,
      to: null,
    });
    const newestFirst = [
      entry('07:00', 'failure', 'after the last bar'),
      entry('06:59', 'spec', 'revision 2'),
      entry('06:10', 'swap', 'swapped'),
      entry('06:05', 'failure', 'crashed'),
      entry('05:00', 'state', 'no mark'),
      entry('04:00', 'failure', 'at the very beginning'),
      entry('03:59', 'swap', 'before the first bar'),
      entry(null, 'failure', 'at an unknown time'),
    ];
    const found = barMarks(newestFirst, bars, 'hour').map(({ kind, index, events }) => [kind, index, events.map(({ message }) => message)]);
    expect(found).toEqual([
      ['failure', 0, ['at the very beginning']],
      ['failure', 2, ['crashed']],
      ['change', 2, ['swapped', 'revision 2']],
    ]);
    expect(barMarks(newestFirst, bars, 'day').map(({ index }) => index)).toContain(0);
    expect(barMarks(newestFirst, [], 'hour')).toEqual([]);
  });
});
