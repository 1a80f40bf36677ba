/** What is forecast from which days, how a forecast ends, and when forecasts are no longer followed. */
import { describe, expect, test } from '@jest/globals';
import {
  AHEAD_MS,
  describeWrong,
  learn,
  localFormat,
  localTime,
  NOTHING_LEARNED,
  type Learned,
} from '../../../../src/reconciler/decide/rules/forecast.ts';
import { NO_HISTORY, RequestHistory, STEPS_PER_DAY } from '../../../../src/schema/status/request-history.ts';

const NOW = 1_000_000;
const MORNING = 54; // 09:00
const EVENING = 120;
/** `needed`: the steps in which a request came. */
const day = (date: string, ...needed: readonly number[]) => ({
  date,
  steps: Array.from({ length: STEPS_PER_DAY }, (_, step) => (needed.includes(step) ? '1' : '0')).join(''),
});
/** Weekdays of November 2026; 2 November is a Monday. */
const weekdays = (count: number, needed: (index: number) => boolean) =>
  Array.from({ length: 30 }, (_, index) => `2026-11-${String(index + 1).padStart(2, '0')}`)
    .filter((date) => ![0, 6].includes(new Date(date).getUTCDay()))
    .slice(0, count)
    .map((date, index) => day(date, needed(index) ? MORNING : EVENING));
const learned = (days: RequestHistory['days'], more: Partial<RequestHistory> = {}): Learned => ({
  ...NOTHING_LEARNED,
  history: { ...NO_HISTORY, days, ...more },
});
/** Monday 16 November, ten weekdays after 2 November. */
const moment = (step: number, more: Partial<Parameters<typeof learn>[1]> = {}) => ({
  now: NOW,
  local: { date: '2026-11-16', step },
  neededAt: undefined,
  isAtRest: true,
  ...more,
});
const forecast = (before: Learned, step: number, more = {}): string | undefined =>
  learn(before, moment(step, more)).forecast?.because.message;

describe('a request is expected', () => {
  const between = 'The slot is loaded ahead of requests: needed between';
  test.each<[string, RequestHistory['days'], number, string | undefined]>([
    ['on most days', weekdays(10, (index) => index !== 3), 52, `${between} 08:40 and 09:10 on 9 of the last 10 weekdays of use`],
    ['in the step that begins', weekdays(10, () => true), MORNING, `${between} 09:00 and 09:30 on 10 of the last 10 weekdays of use`],
    ['not earlier than half an hour before', weekdays(10, () => true), 51, undefined],
    ['not after it', weekdays(10, () => true), 55, undefined],
    ['not on six of ten', weekdays(10, (index) => index % 3 !== 0), 52, undefined],
    [
      'on seven of ten',
      weekdays(10, (index) => index % 3 !== 0 || index === 6),
      52,
      `${between} 08:40 and 09:10 on 7 of the last 10 weekdays of use`,
    ],
    ['after five days', weekdays(5, () => true), 52, `${between} 08:40 and 09:10 on 5 of the last 5 weekdays of use`],
    [
      'on the last four days, after others',
      weekdays(10, (index) => index > 5),
      52,
      `${between} 08:40 and 09:10 on 4 of the last 4 weekdays of use`,
    ],
    ['not on the last three days', weekdays(10, (index) => index > 6), 52, undefined],
    ['not after three days', weekdays(3, () => true), 52, undefined],
    [
      'after days on which the slot was not used',
      [
        ...weekdays(5, () => true),
        ...weekdays(10, () => true)
          .slice(5)
          .map(({ date }) => day(date)),
      ],
      52,
      `${between} 08:40 and 09:10 on 5 of the last 5 weekdays of use`,
    ],
    ['not without a day', [], 52, undefined],
    ['not from days on the weekend', ['01', '07', '08', '14', '15'].map((date) => day(`2026-11-${date}`, MORNING)), 52, undefined],
    ['not from days in the future', weekdays(21, () => true).slice(11), 52, undefined],
    [
      'on the day of the week on which it always came',
      [day('2026-10-26', 54), day('2026-11-02', 54), day('2026-11-03'), day('2026-11-09', 53)],
      52,
      `${between} 08:40 and 09:10 on the last 3 Mondays`,
    ],
    [
      'not on the day of the week on which it never came',
      [day('2026-10-26', EVENING), ...weekdays(10, (index) => index % 5 !== 0)],
      52,
      undefined,
    ],
    [
      'up to the end of the day',
      weekdays(10, () => true).map(({ date }) => day(date, 143)),
      142,
      `${between} 23:40 and 24:00 on 10 of the last 10 weekdays of use`,
    ],
  ])('%s', (_, days, step, message) => {
    expect(forecast(learned(days), step)).toBe(message);
  });

  test.each<[string, object, Partial<RequestHistory>]>([
    ['while the slot runs', { isAtRest: false }, {}],
    ['while requests come', { neededAt: { date: '2026-11-16', step: 52 } }, {}],
    ['on the day of a wrong one', {}, { missedOn: '2026-11-16' }],
    ['after a day with a wrong one and no request', {}, { missedOn: '2026-11-15' }],
  ])('by no forecast %s', (_, now, before) => {
    expect(
      forecast(
        learned(
          weekdays(10, () => true),
          before,
        ),
        52,
        now,
      ),
    ).toBeUndefined();
  });
});

test('a request is expected again on the day after a wrong forecast on which others came', () => {
  expect(
    forecast(
      learned(
        weekdays(10, () => true),
        { missedOn: '2026-11-13' },
      ),
      52,
    ),
  ).toContain('10 of the last 10');
});

describe('a forecast', () => {
  const made = learn(learned(weekdays(10, () => true)), moment(52));
  const outcomes = (after: Learned) => [after.history.outcomes, after.history.missedOn, after.forecast, after.ended?.right];

  test('goes on as it was made until its time is over', () => {
    const after = learn(made, moment(54, { now: NOW + AHEAD_MS - 1 }));
    expect(after).toBe(made);
  });

  test('was right if a request comes in time', () => {
    const neededAt = { date: '2026-11-16', step: 53 };
    expect(outcomes(learn(made, moment(53, { neededAt, isAtRest: false })))).toEqual([[true], undefined, undefined, true]);
  });

  test('was wrong if none has come, and there is no other until one comes', () => {
    const wrong = learn(made, moment(54, { now: NOW + AHEAD_MS }));
    expect(outcomes(wrong)).toEqual([[false], '2026-11-16', undefined, false]);
    expect(learn(wrong, moment(54, { now: NOW + AHEAD_MS + 1 })).ended).toBeUndefined();
    const used = learn(wrong, moment(60, { neededAt: { date: '2026-11-16', step: 60 } }));
    expect(used.history.missedOn).toBeUndefined();
  });

  test('loads the slot while at least as many were right as wrong', () => {
    const loads = (...last: readonly boolean[]) =>
      learn(
        learned(
          weekdays(10, () => true),
          { outcomes: last },
        ),
        moment(52),
      ).forecast?.loads;
    expect([loads(), loads(true, false), loads(true, false, false), loads(false, true, true)]).toEqual([true, true, false, true]);
  });

  test('that was wrong is described, and whether there will be others', () => {
    const { because } = made.forecast ?? { because: { reason: 'WarmForecast', message: '' } };
    expect(describeWrong(because, [true, false])).toBe(`No request has come in time: ${because.message}`);
    expect(describeWrong(because, [true, false, false])).toContain(
      'as 2 of the last 3 forecasts were wrong, the slot is not loaded for the next ones',
    );
  });
});

describe('the history', () => {
  test('has each day on which the service ran, and when the slot was needed', () => {
    const local = { date: '2026-11-16', step: 0 };
    const first = learn(NOTHING_LEARNED, moment(0, { local, neededAt: { date: '2026-11-16', step: 0 } }));
    expect(first.history.days).toEqual([day('2026-11-16', 0)]);
    const again = learn(first, moment(0, { local, neededAt: { date: '2026-11-16', step: 0 } }));
    expect(again).toBe(first);
    const next = learn(first, moment(0, { local: { date: '2026-11-17', step: 1 } }));
    expect(next.history.days).toEqual([day('2026-11-16', 0), day('2026-11-17')]);
    expect(RequestHistory.parse(JSON.parse(JSON.stringify(next.history)))).toEqual(next.history);
  });

  test('keeps six weeks, and nothing from the future of a clock that was wrong', () => {
    const days = [day('2026-10-05', 1), day('2026-10-06', 1), day('2031-01-01', 1)];
    expect(learn(learned(days), moment(0)).history.days.map(({ date }) => date)).toEqual(['2026-10-06', '2026-11-16']);
  });

  test('has the date of the time zone', () => {
    const at = (zone: string, wallMs: number) => localTime(localFormat(zone), wallMs);
    const time = Date.parse('2026-03-29T00:59:59Z');
    expect(at('Europe/Berlin', time)).toEqual({ date: '2026-03-29', step: 11 });
    expect(at('Europe/Berlin', time + 1000)).toEqual({ date: '2026-03-29', step: 18 });
    expect(at('Pacific/Kiritimati', time)).toEqual({ date: '2026-03-29', step: 89 });
    expect(at('America/New_York', time)).toEqual({ date: '2026-03-28', step: 125 });
  });
});
