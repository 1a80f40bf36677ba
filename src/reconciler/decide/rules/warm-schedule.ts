/** Whether the schedule of a slot keeps it loaded now, and when that changes. Pure. */
import { Cron } from 'croner';
import { parseWarmTime } from '../../../schema/slot/warm-times.ts';

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
