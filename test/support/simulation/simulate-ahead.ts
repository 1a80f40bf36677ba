/**
 * Slots that are loaded ahead of requests in some worlds: schedules that begin and end while the world lives, overlap, or hold at all times, and habits of
 * earlier days. The wall clock of every world jumps besides. All random numbers are its own. The worlds of small seeds, by which mutants are noticed, and those of
 * the corpus have none.
 */
import { localFormat, localTime } from '../../../src/reconciler/decide/rules/forecast.ts';
import { STEPS_PER_DAY, type RequestHistory } from '../../../src/schema/status/request-history.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { createRandom, type Random } from './seeded-random.ts';
import { WALL_BEGIN } from './world-clock.ts';
import { slotName, type WorldOptions } from './world.ts';

type Lifecycle = Pick<NonNullable<SlotDocument['lifecycle']>, 'warm' | 'prewarm'>;

export interface Ahead {
  readonly options: Pick<WorldOptions, 'histories'> & { readonly env: Readonly<Record<string, string>> };
  /** `good`: what nothing but an edit changes, whatever the wall clock does. */
  lifecycleOf(good: boolean): Lifecycle;
}

const LEAST_SEED = 10_000;
/** Without daylight saving time, with half an hour of it, and with a gap of a whole day in 2011. */
const ZONES = ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns', 'Pacific/Apia'] as const;
const DAYS = ['', 'Wed ', 'Tue-Thu ', 'Fri-Mon ', 'Sun,Wed '] as const;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** One day, two halves, and a day that begins in the morning. */
const ALWAYS: readonly [readonly string[], ...(readonly string[])[]] = [['00:00-24:00'], ['12:00-24:00', '00:00-12:00'], ['07:00-07:00']];

export function createAhead(seed: number, names: readonly string[]): Ahead {
  const random = createRandom(seed ^ 0xa_5080);
  if (!random.chance(0.4) || seed < LEAST_SEED) return { options: { env: {} }, lifecycleOf: () => ({}) };
  const zone = random.pick(ZONES);
  return {
    options: { env: { SVC_TIME_ZONE: zone }, histories: new Map(names.map((name) => [slotName(name), habits(random, zone)])) },
    lifecycleOf: (good) =>
      good
        ? { warm: random.chance(0.5) ? [...random.pick(ALWAYS)] : [] }
        : {
            warm: Array.from({ length: random.int(0, 3) }, () => warmTime(random, zone)),
            prewarm: random.chance(0.4) ? 'learned' : 'never',
          },
  };
}

/** Half of them begin or end within the first minutes of the world, or lie around them. */
function warmTime(random: Random, zone: string): string {
  const timeAt = (ms: number): string => new Date(ms).toLocaleTimeString('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
  const minutes = random.chance(0.5) ? 3 : 24 * 60;
  const [from, to] = [random.int(-minutes, minutes), random.int(-minutes, minutes)];
  return `${random.pick(DAYS)}${timeAt(WALL_BEGIN + from * MINUTE_MS)}-${timeAt(WALL_BEGIN + to * MINUTE_MS)}`;
}

/** Ten days, all alike, before the world begins. */
function habits(random: Random, zone: string): RequestHistory {
  const steps = Array.from({ length: STEPS_PER_DAY }, () => (random.chance(0.3) ? '1' : '0')).join('');
  const format = localFormat(zone);
  const days = Array.from({ length: 10 }, (_, index) => ({ date: localTime(format, WALL_BEGIN - (10 - index) * DAY_MS).date, steps }));
  return { days, outcomes: [] };
}
