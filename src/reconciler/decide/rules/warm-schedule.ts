/** Whether the schedule of a slot keeps it loaded now, and when that changes. Pure. */
import { Cron } from 'croner';

export interface ScheduledNow {
  /** The entry that applies; undefined if none does. */
  readonly entry: string | undefined;
  /** Unix milliseconds until which nothing changes; infinite without a schedule. */
  readonly until: number;
}

const SECOND_MS = 1000;

/** `schedule`: entries that match `WARM_TIME` and may overlap. `zone`: an IANA name. Times are Unix milliseconds. */
export function scheduledAt(schedule: readonly string[], zone: string, wallNow: number): ScheduledNow {
  const entries = schedule.map((entry) => ({ entry, ...entryAt(entry, zone, wallNow) }));
  const active = entries.find(({ isActive }) => isActive);
  return { entry: active?.entry, until: Math.min(Number.POSITIVE_INFINITY, ...entries.map(({ until }) => until)) };
}

/**
 * Looks back to the last beginning, so that it does not matter how the clock came to show this time. Where the clock
 * skips a beginning or an end, cron takes the time after the gap; an entry within a gap lasts no time on that day.
 */
function entryAt(entry: string, timezone: string, wallNow: number): { readonly isActive: boolean; readonly until: number } {
  const { from, to, lastsADay } = parseWarmTime(entry);
  const begins = new Cron(from, { timezone });
  const second = Math.floor(wallNow / SECOND_MS) * SECOND_MS;
  const next = begins.nextRun(new Date(second))?.getTime() ?? Number.POSITIVE_INFINITY;
  const [last] = begins.previousRuns(1, new Date(second + SECOND_MS));
  if (last === undefined) return { isActive: false, until: next };
  const after = new Date(last.getTime() - (lastsADay ? 0 : SECOND_MS));
  const end = new Cron(to, { timezone }).nextRun(after)?.getTime() ?? Number.POSITIVE_INFINITY;
  return wallNow < end ? { isActive: true, until: Math.min(end, next) } : { isActive: false, until: next };
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;

/** As cron expressions, so that time zones and changes of the clock are what they are in cron. */
interface WarmTime {
  readonly from: string;
  readonly to: string;
  /** It ends when it began, a day later. */
  readonly lastsADay: boolean;
}

/** `text` matches `WARM_TIME`. A time that ends no later than it begins ends on the next day. */
function parseWarmTime(text: string): WarmTime {
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
