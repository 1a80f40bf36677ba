/** Times of the week at which a slot is to be loaded, such as `Mon-Fri 08:30-18:00`. Pure. */

export const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;

/** Days, of which all are meant where none is written, and two times; the second one may be `24:00`. */
export const WARM_TIME =
  /^((Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?(,(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?)* )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$/;

/** As cron expressions, so that time zones and changes of the clock are what they are in cron. */
export interface WarmTime {
  readonly from: string;
  readonly to: string;
  /** It ends when it began, a day later. */
  readonly lastsADay: boolean;
}

/** `text` matches `WARM_TIME`. A time that ends no later than it begins ends on the next day. */
export function parseWarmTime(text: string): WarmTime {
  const space = text.indexOf(' ');
  const days = space < 0 ? DAYS.map((_, day) => day) : text.slice(0, space).split(',').flatMap(daysOf);
  const [from = 0, to = 0] = text
    .slice(space + 1)
    .split('-')
    .map(minutesOf);
  const later = to <= from || to === MINUTES_PER_DAY ? 1 : 0;
  return {
    from: cronOf(from, days),
    to: cronOf(
      to,
      days.map((day) => (day + later) % DAYS.length),
    ),
    lastsADay: (to - from) % MINUTES_PER_DAY === 0,
  };
}

const MINUTES_PER_DAY = 24 * 60;

/** A range may go over the end of the week: `Fri-Mon`. */
function daysOf(part: string): readonly number[] {
  const [first = 0, last = first] = part.split('-').map((name) => DAYS.findIndex((day) => day === name));
  return Array.from({ length: ((last - first + DAYS.length) % DAYS.length) + 1 }, (_, index) => (first + index) % DAYS.length);
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}

const cronOf = (minutes: number, days: readonly number[]): string =>
  `${minutes % 60} ${Math.floor(minutes / 60) % 24} * * ${[...new Set(days)].toSorted((a, b) => a - b).join(',')}`;
