/** Sums of requests for each hour, caller, slot, model and currency, and sums of those. Pure. */
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import type { Price } from '../../schema/slot/scaling.ts';

export const HOUR_MS = 3_600_000;
const HOURS_OF_DAY = 24;
export const OTHERS = 'others';

export const COUNTS = [
  'requests',
  'errors',
  'input',
  'cached',
  'output',
  'estimated',
  'queueMs',
  'busyMs',
  'audioMs',
  'images',
  'nanos',
  'milliJoules',
  'loads',
  'evictions',
] as const;
/**
 * `estimated`: requests whose tokens were guessed. `errors`: a status from 400, also if the client has left. `nanos`:
 * the cost in billionths of the currency. `audioMs`, `images`: 0 if nothing is known.
 * `milliJoules`: an estimate of the energy, 0 if nothing is known. `loads`, `evictions`: how often the slot was loaded
 * for a request of the caller, or stopped to make room for such a slot.
 */
export type UsageCounts = Record<(typeof COUNTS)[number], number>;

export const NAMES = ['caller', 'slot', 'model', 'currency'] as const;
/**
 * `slot` and `model` are empty if the request reached none, `caller` if the service itself sent it, `currency` if the
 * slot has no price.
 */
export interface UsageRow extends Readonly<Record<(typeof NAMES)[number], string>>, UsageCounts {
  /** Hours since 1970. */
  readonly hour: number;
}

export const GROUPINGS = ['token', 'model', 'slot', 'day', 'hour'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** What a sum was grouped by, and its currency. `hour`: that of the day's beginning where days are asked for. */
export type UsageSum = Readonly<UsageCounts> & Pick<UsageRow, 'currency'> & Partial<Pick<UsageRow, 'hour' | 'caller' | 'slot' | 'model'>>;

/** From one hour up to another, which is excluded. */
export interface HourRange {
  readonly from: number;
  readonly to: number;
}

export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS);

export const noCounts = (): UsageCounts => ({
  requests: 0,
  errors: 0,
  input: 0,
  cached: 0,
  output: 0,
  estimated: 0,
  queueMs: 0,
  busyMs: 0,
  audioMs: 0,
  images: 0,
  nanos: 0,
  milliJoules: 0,
  loads: 0,
  evictions: 0,
});

/**
 * A token at 0.15 for a million costs 150 of these, so sums of many small requests lose nothing.
 */
export const NANOS = 1_000_000_000;
const NANOS_OF_MILLIONTH = NANOS / 1_000_000;
const SECONDS_OF_MINUTE = 60;

/** Nine million of a currency: no request costs that, and sums of a thousand such still fit into the file. */
const MOST_NANOS = Number.MAX_SAFE_INTEGER;

/** In billionths of the currency. What is not known costs nothing; tokens that were guessed do cost. */
export function costOf({ tokens, media }: Pick<FinishedRequest, 'tokens' | 'media'>, price: Price): number {
  const { promptTokens = 0, cachedTokens = promptTokens, outputTokens = 0, image = 0, audioMinute = 0 } = price;
  const { input = 0, cached = 0, output = 0 } = tokens ?? {};
  const { images = 0, audioSeconds = 0 } = media ?? {};
  const ofTokens = (input - cached) * promptTokens + cached * cachedTokens + output * outputTokens;
  const ofMedia = images * image + (audioSeconds / SECONDS_OF_MINUTE) * audioMinute;
  return Math.min(Math.max(0, Math.round(ofTokens * NANOS_OF_MILLIONTH + ofMedia * NANOS)), MOST_NANOS);
}

/** Adds up sums and rows with the same values of `by` and the same currency, sorted by time and then by names. */
export function sumUsage(parts: readonly UsageSum[], by: readonly Grouping[]): readonly UsageSum[] {
  const sums = new Map<string, UsageSum & UsageCounts>();
  for (const part of parts) {
    const group = groupOf(part, by);
    const key = JSON.stringify(Object.values(group));
    const sum = sums.get(key) ?? { ...group, ...noCounts() };
    sums.set(key, sum);
    for (const count of COUNTS) sum[count] += part[count];
  }
  return [...sums.values()].toSorted((one, other) => (one.hour ?? 0) - (other.hour ?? 0) || compareNames(one, other));
}

function groupOf({ hour = 0, ...names }: UsageSum, by: readonly Grouping[]): Omit<UsageSum, keyof UsageCounts> {
  const time = by.includes('hour') ? { hour } : by.includes('day') ? { hour: dayOf(hour) * HOURS_OF_DAY } : {};
  const grouped = NAMES.filter((name) => isGrouped(name, by)).map((name) => [name, names[name] ?? '']);
  return { currency: '', ...time, ...Object.fromEntries(grouped) };
}

/** Amounts of different currencies are never added up. */
export const isGrouped = (name: (typeof NAMES)[number], by: readonly Grouping[]): boolean =>
  name === 'currency' || by.includes(name === 'caller' ? 'token' : name);

const dayOf = (hour: number): number => Math.floor(hour / HOURS_OF_DAY);

function compareNames(one: UsageSum, other: UsageSum): number {
  for (const name of NAMES) {
    const [left = '', right = ''] = [one[name], other[name]];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** Whole days, of which each slice reads some thousand rows, or some hours. */
const SLICE_HOURS = { days: 28 * HOURS_OF_DAY, hours: 4 * HOURS_OF_DAY };

/** Cuts a range at ends of days, so that no sum of a day or an hour has parts in two slices. */
export function sliceRange({ from, to }: HourRange, by: readonly Grouping[]): readonly HourRange[] {
  const length = by.includes('hour') ? SLICE_HOURS.hours : SLICE_HOURS.days;
  const first = Math.floor(from / length);
  const count = from < to ? Math.ceil(to / length) - first : 0;
  return Array.from({ length: count }, (_, index) => ({
    from: Math.max(from, (first + index) * length),
    to: Math.min(to, (first + index + 1) * length),
  }));
}

interface SplitRange {
  /** Hours before the first whole day, and after the last one. */
  readonly hours: readonly [HourRange, HourRange];
  readonly days: HourRange;
}

/** Splits a range into whole days, numbered from 1970, and the hours around them. `by` hours: no day is whole. */
export function splitRange({ from, to }: HourRange, by: readonly Grouping[]): SplitRange {
  const [first, end] = [Math.ceil(from / HOURS_OF_DAY), Math.floor(to / HOURS_OF_DAY)];
  const none = { from: 0, to: 0 };
  if (by.includes('hour') || first >= end) return { hours: [{ from, to }, none], days: none };
  return {
    hours: [
      { from, to: first * HOURS_OF_DAY },
      { from: end * HOURS_OF_DAY, to },
    ],
    days: { from: first, to: end },
  };
}
