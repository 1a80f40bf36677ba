/**
 * Forecasts requests for a slot from the days on which it was needed. In each pass, for each slot that learns:
 *
 *     1. note that it was needed
 *     2. end the forecast: right if a request has come, wrong if its time is over
 *     3. make a forecast if the slot is unloaded, and days like this one give a reason
 *
 * A forecast loads the slot only while at least as many of the last ones were right as wrong; the others are counted
 * all the same, so that it goes on once they would have been right. After a wrong one, there is no other on that day,
 * nor on later ones if no request came on that day, until one comes: a holiday costs one load. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import {
  KEPT_DAYS,
  KEPT_OUTCOMES,
  NO_HISTORY,
  STEP_MINUTES,
  STEPS_PER_DAY,
  type RequestHistory,
} from '../../../schema/status/request-history.ts';

/** How far ahead a request is expected, in steps: long enough to load any model, short enough to cost little. */
const AHEAD_STEPS = 3;
export const AHEAD_MS = AHEAD_STEPS * STEP_MINUTES * 60_000;
/** All of the last four days on which it was needed, or seven of ten: habits change, and people are late. */
const RECENT_DAYS = 4;
const MOST_DAYS = 10;
const LEAST_SHARE = 0.7;
/** The same days of as many weeks decide where they agree: some slots are needed on Mondays only. */
const SAME_DAYS = 3;
const DAY_MS = 24 * 60 * 60_000;

/** A wall time in a time zone. */
export interface LocalTime {
  /** `2026-11-26`. */
  readonly date: string;
  readonly step: number;
}

export interface Forecast {
  /** Monotonic milliseconds. */
  readonly endsAt: number;
  readonly because: Finding;
  /** The slot is loaded for it. */
  readonly loads: boolean;
}

export interface Learned {
  readonly history: RequestHistory;
  readonly forecast: Forecast | undefined;
  /** The forecast that has just ended. */
  readonly ended?: Forecast & { readonly right: boolean };
}

export const NOTHING_LEARNED: Learned = { history: NO_HISTORY, forecast: undefined };

interface Moment {
  readonly now: number;
  readonly local: LocalTime;
  /** When it was last needed since the last pass; undefined if it was not. */
  readonly neededAt: LocalTime | undefined;
  /** Only a forecast would keep it loaded. */
  readonly isAtRest: boolean;
}

/** Returns `before` itself where there is nothing new. */
export function learn(before: Learned, { now, local, neededAt, isAtRest }: Moment): Learned {
  const days = noteDay(before.history.days, local, neededAt);
  const isOver = before.forecast !== undefined && (neededAt !== undefined || now >= before.forecast.endsAt);
  const ended = isOver && before.forecast !== undefined ? { ...before.forecast, right: neededAt !== undefined } : undefined;
  const outcomes = ended === undefined ? before.history.outcomes : [...before.history.outcomes, ended.right].slice(-KEPT_OUTCOMES);
  const missed = ended?.right === false ? local.date : before.history.missedOn;
  const missedOn = neededAt === undefined ? missed : undefined;
  const kept = isOver ? undefined : before.forecast;
  const reason =
    isAtRest && kept === undefined && neededAt === undefined && !isPaused(days, local, missedOn) ? whyExpected(days, local) : undefined;
  const forecast = reason === undefined ? kept : { because: because(reason), endsAt: now + AHEAD_MS, loads: isWorthwhile(outcomes) };
  const isSame = days === before.history.days && ended === undefined && missedOn === before.history.missedOn;
  if (isSame && forecast === before.forecast && before.ended === undefined) return before;
  return {
    history: isSame ? before.history : { days, outcomes, ...(missedOn === undefined ? {} : { missedOn }) },
    forecast,
    ...(ended === undefined ? {} : { ended }),
  };
}

function isPaused(days: RequestHistory['days'], { date }: LocalTime, missedOn: string | undefined): boolean {
  return missedOn !== undefined && (missedOn === date || days.find((day) => day.date === missedOn)?.steps.includes('1') !== true);
}

/** At least as often right as wrong; so is a slot without forecasts. */
export function isWorthwhile(outcomes: readonly boolean[]): boolean {
  return outcomes.filter((right) => right).length * 2 >= outcomes.length;
}

/** For the timeline of a slot that was loaded and not needed. */
export function describeWrong({ message }: Finding, outcomes: readonly boolean[]): string {
  const wrong = outcomes.filter((right) => !right).length;
  const stops = isWorthwhile(outcomes)
    ? ''
    : `; as ${wrong} of the last ${outcomes.length} forecasts were wrong, the slot is not loaded for the next ones`;
  return `No request has come in time: ${message}${stops}`;
}

/** A day in the future was noted by a clock that was wrong. */
function noteDay(days: RequestHistory['days'], { date }: LocalTime, neededAt: LocalTime | undefined): RequestHistory['days'] {
  const oldest = dateBefore(date, KEPT_DAYS);
  const isKept = (each: { readonly date: string }): boolean => each.date > oldest && each.date <= date;
  const kept = days.every(isKept) ? days : days.filter(isKept);
  const all = kept.at(-1)?.date === date ? kept : [...kept, { date, steps: '0'.repeat(STEPS_PER_DAY) }];
  const index = neededAt === undefined ? -1 : all.findIndex((each) => each.date === neededAt.date);
  const day = all[index];
  if (day === undefined || neededAt === undefined || day.steps[neededAt.step] === '1') return all;
  return all.with(index, { ...day, steps: `${day.steps.slice(0, neededAt.step)}1${day.steps.slice(neededAt.step + 1)}` });
}

const because = (reason: string): Finding => ({ reason: 'WarmForecast', message: `The slot is loaded ahead of requests: ${reason}` });

/** Why a request is expected soon; undefined where none is. */
function whyExpected(days: RequestHistory['days'], { date, step }: LocalTime): string | undefined {
  const end = Math.min(step + AHEAD_STEPS, STEPS_PER_DAY);
  const past = days
    .filter((day) => day.date < date)
    .map(({ date: at, steps }) => ({ day: weekdayOf(at), used: steps.includes('1'), needed: steps.slice(step, end).includes('1') }));
  const today = weekdayOf(date);
  const same = past.filter(({ day }) => day === today).slice(-SAME_DAYS);
  const between = `needed between ${timeOf(step)} and ${timeOf(end)} on`;
  if (same.length === SAME_DAYS && same.every(({ needed }) => needed)) return `${between} the last ${SAME_DAYS} ${NAMES[today]}s`;
  if (same.length === SAME_DAYS && !same.some(({ needed }) => needed)) return undefined;
  const alike = past.filter(({ day, used }) => used && isWeekend(day) === isWeekend(today)).slice(-MOST_DAYS);
  const times = (among: typeof alike): number => among.filter(({ needed }) => needed).length;
  const compared = times(alike) < alike.length * LEAST_SHARE ? alike.slice(-RECENT_DAYS) : alike;
  const isHabit = compared.length >= RECENT_DAYS && (compared === alike || times(compared) === compared.length);
  const kind = isWeekend(today) ? 'weekend days' : 'weekdays';
  return isHabit ? `${between} ${times(compared)} of the last ${compared.length} ${kind} of use` : undefined;
}

const NAMES = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
/** Sunday is 0. */
const isWeekend = (day: number): boolean => day % 6 === 0;
const weekdayOf = (date: string): number => new Date(`${date}T00:00:00Z`).getUTCDay();
const dateBefore = (date: string, days: number): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) - days * DAY_MS).toISOString().slice(0, 10);

function timeOf(step: number): string {
  const minutes = step * STEP_MINUTES;
  return [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

/** For `localTime`. To make it takes longer than a pass. `zone`: an IANA time zone. */
export const localFormat = (zone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });

/** Swedish times are written as ISO 8601 has them: `2026-11-26 08:52`. */
export function localTime(format: Intl.DateTimeFormat, wallMs: number): LocalTime {
  const [date = '', time = ''] = format.format(wallMs).split(' ');
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return { date, step: Math.floor((hours * 60 + minutes) / STEP_MINUTES) };
}
