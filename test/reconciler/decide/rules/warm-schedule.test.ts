/** Which entry of a schedule applies, and until when, over the corners of clocks and weeks. */
import { describe, expect, test } from '@jest/globals';
import { scheduledAt } from '../../../../src/reconciler/decide/rules/warm-schedule.ts';
import { WARM_TIME } from '../../../../src/schema/words/quantities.ts';

const BERLIN = 'Europe/Berlin';
const at = (schedule: readonly string[], time: string, zone = BERLIN) => {
  const { entry, until } = scheduledAt(schedule, zone, Date.parse(time));
  return [entry, Number.isFinite(until) ? new Date(until).toISOString().slice(0, 16) : 'never'];
};

describe('a schedule', () => {
  const office = 'Mon-Fri 08:30-18:00';
  test.each<[string, readonly string[], string, string | undefined, string]>([
    ['applies from its first second', [office], '2026-11-26T08:30:00+01:00', office, '2026-11-26T17:00'],
    ['applies after a clock jumped over its beginning', [office], '2026-11-26T11:00:00.5+01:00', office, '2026-11-26T17:00'],
    ['does not apply in the second before', [office], '2026-11-26T08:29:59.999+01:00', undefined, '2026-11-26T07:30'],
    ['ends with the second that it names', [office], '2026-11-26T18:00:00+01:00', undefined, '2026-11-27T07:30'],
    ['does not apply on other days', [office], '2026-11-28T12:00:00+01:00', undefined, '2026-11-30T07:30'],
    ['may go over midnight', ['Fri 22:00-02:00'], '2026-11-28T01:59:00+01:00', 'Fri 22:00-02:00', '2026-11-28T01:00'],
    ['may go over the end of the week', ['Fri-Mon 08:00-09:00'], '2026-11-29T08:00:00+01:00', 'Fri-Mon 08:00-09:00', '2026-11-29T08:00'],
    ['applies every day without a day', ['08:00-09:00'], '2026-11-29T08:10:00+01:00', '08:00-09:00', '2026-11-29T08:00'],
    ['may last a day', ['Sun 00:00-24:00'], '2026-11-29T23:59:00+01:00', 'Sun 00:00-24:00', '2026-11-29T23:00'],
    ['may last all days', ['00:00-24:00'], '2026-11-29T00:00:00+01:00', '00:00-24:00', '2026-11-29T23:00'],
    [
      'may last from one time to the same of the next day',
      ['Sat 08:00-08:00'],
      '2026-11-29T07:00:00+01:00',
      'Sat 08:00-08:00',
      '2026-11-29T07:00',
    ],
    ['may overlap', ['08:00-10:00', '09:00-11:00'], '2026-11-29T09:30:00+01:00', '08:00-10:00', '2026-11-29T09:00'],
    [
      'goes on with the second of two that overlap',
      ['08:00-10:00', '09:00-11:00'],
      '2026-11-29T10:00:00+01:00',
      '09:00-11:00',
      '2026-11-29T10:00',
    ],
    ['never applies without entries', [], '2026-11-29T10:00:00+01:00', undefined, 'never'],
    // On 29 March 2026, the clocks of Berlin go from 02:00 to 03:00; on 25 October, from 03:00 to 02:00.
    ['begins after a gap in which it would begin', ['02:30-05:00'], '2026-03-29T03:00:00+02:00', '02:30-05:00', '2026-03-29T03:00'],
    ['ends after a gap in which it would end', ['01:00-02:30'], '2026-03-29T03:00:00+02:00', undefined, '2026-03-29T23:00'],
    ['lasts no time within a gap', ['02:10-02:50'], '2026-03-29T03:00:00+02:00', undefined, '2026-03-30T00:10'],
    ['applies again the day after a gap', ['02:10-02:50'], '2026-03-30T02:20:00+02:00', '02:10-02:50', '2026-03-30T00:50'],
    ['lasts an hour longer over a time that comes twice', ['02:00-03:00'], '2026-10-25T02:30:00+01:00', '02:00-03:00', '2026-10-25T02:00'],
    ['ends the first time where its end comes twice', ['01:00-02:30'], '2026-10-25T02:45:00+02:00', undefined, '2026-10-26T00:00'],
  ])('%s', (_, schedule, time, entry, until) => {
    expect(at(schedule, time)).toEqual([entry, until]);
  });

  test('knows a zone that has left out a whole day', () => {
    // Samoa had no 30 December 2011, a Friday.
    expect(at(['Fri 09:00-10:00'], '2011-12-29T23:59:00-10:00', 'Pacific/Apia')).toEqual([undefined, '2012-01-05T19:00']);
  });

  test.each([
    'Mon-Fri 8:30-18:00',
    'mon 08:00-09:00',
    'Mon 08:00',
    'Mon, Tue 08:00-09:00',
    'Mon-Tue-Wed 08:00-09:00',
    '24:00-25:00',
    '08:60-09:00',
    '',
  ])('is not written "%s"', (text) => expect(WARM_TIME.test(text)).toBe(false));
});
