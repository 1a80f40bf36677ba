/**
 * `prewarm = "learned"` over 90 days of the real loop: people who come to work on weekdays at about the same time, earlier
 * from the middle on, on holidays not at all, and another slot that takes the memory at times. Each load must say what
 * is true, and none may take anything from a slot that is used.
 */
import { describe, expect, test } from '@jest/globals';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import type { Decide } from '../../src/reconciler/plan-pass.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { createRandom, type Random } from '../support/simulation/seeded-random.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DAYS = 90;
const PRIMARY = slotName('primary');
const MINE = slotName('mine');
/** Two weeks, and five other days. */
const VACATION = [55, 68] as const;
const LOAD_MS = 40_000;

const ON_DEMAND: SlotDocument = { provider: 'gguf', load: 'on-demand', model: { default: 'a.gguf' } };

interface Account {
  /** When each request to "primary" began and ended, in Unix milliseconds. */
  readonly needed: number[];
  /** The first request of each working day. */
  readonly first: { readonly at: number; readonly waitedMs: number }[];
  readonly loads: { readonly at: number; readonly because: string }[];
  /** Minutes for which "primary" ran ahead of requests in vain. */
  wastedMinutes: number;
  readonly violations: string[];
}

async function live(seed: number): Promise<Account> {
  const random = createRandom(seed);
  const account: Account = { needed: [], first: [], loads: [], wastedMinutes: 0, violations: [] };
  const world = createWorld({
    env: { SVC_TIME_ZONE: 'UTC', SVC_MEMORY_BUDGET: '1500', SVC_RESYNC: '5m' },
    readyMs: () => LOAD_MS,
    decide: watched(account, () => world),
  });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { ...ON_DEMAND, lifecycle: { idleTimeout: '10m', prewarm: 'learned' } });
  world.edit('mine', { ...ON_DEMAND, model: { default: 'b.gguf' }, lifecycle: { idleTimeout: '5m' } });
  const holidays = new Set(Array.from({ length: 5 }, () => random.int(20, DAYS - 1)));
  const midnight = Math.ceil(world.clock.wallNow() / DAY_MS) * DAY_MS;
  await world.clock.advance(midnight - world.clock.wallNow());
  for (let day = 0; day < DAYS; day += 1) {
    const isOff = holidays.has(day) || (day >= VACATION[0] && day < VACATION[1]);
    const isWeekday = ![0, 6].includes(new Date(midnight + day * DAY_MS).getUTCDay());
    await liveDay(world, account, {
      random,
      from: midnight + day * DAY_MS,
      firstAt: isWeekday && !isOff ? (day < 45 ? 9 : 7.5) : undefined,
    });
  }
  return account;
}

/** The first request comes within ten minutes of `firstAt`, in hours, others within an hour and mostly after lunch. A controller lives for a day. */
async function liveDay(
  world: World,
  account: Account,
  { random, from, firstAt }: { readonly random: Random; readonly from: number; readonly firstAt: number | undefined },
): Promise<void> {
  const times: { readonly at: number; readonly slot: typeof PRIMARY }[] = [];
  if (firstAt !== undefined) {
    const step = (minutes: number): number => from + Math.floor(minutes / 10) * 10 * MINUTE_MS + random.int(1, 8) * MINUTE_MS;
    const first = firstAt * 60 + random.int(-10, 9);
    const afternoon = random.chance(0.9) ? [13 * 60 + random.int(0, 29)] : [];
    for (const at of [first, first + random.int(10, 59), ...afternoon]) times.push({ at: step(at), slot: PRIMARY });
  }
  for (let count = random.int(0, 6); count > 0; count -= 1) times.push({ at: from + random.int(6 * 60, 22 * 60) * MINUTE_MS, slot: MINE });
  let isFirst = true;
  for (const { at, slot } of times.toSorted((a, b) => a.at - b.at)) {
    await world.clock.advance(at - world.clock.wallNow());
    const request = world.life().traffic.ask(slot, 2000);
    const isServed = await world.clock.until(() => request.answers.length > 0, 3 * MINUTE_MS);
    if (!isServed || request.answers[0] !== 'served') account.violations.push(`A request to "${slot}" was ${request.answers.join()}`);
    if (slot === PRIMARY && isFirst) account.first.push({ at, waitedMs: world.clock.wallNow() - at - 2000 });
    if (slot === PRIMARY) account.needed.push(at, world.clock.wallNow());
    if (slot === PRIMARY) isFirst = false;
  }
  await world.clock.advance(from + DAY_MS - world.clock.wallNow());
  await world.restart();
}

/** Looks at each plan from outside. */
function watched(account: Account, worldOf: () => World): Decide {
  let last: number | undefined;
  return {
    inspect,
    plan(desired, observed, now, steps) {
      const made = plan(desired, observed, now, steps);
      const { wallNow } = worldOf().clock;
      const isAhead = made.decisions.get(PRIMARY)?.ahead !== undefined && observed.runtime.kind === 'reachable';
      if (isAhead && last !== undefined) account.wastedMinutes += (now - last) / MINUTE_MS;
      last = isAhead ? now : undefined;
      for (const action of made.actions) {
        if (action.name === 'apply' && action.because.reason === 'WarmForecast') {
          account.loads.push({ at: wallNow(), because: action.because.message });
          if (made.actions.some(({ name }) => name === 'stop')) account.violations.push('A load ahead of requests came with a stop');
          if (observed.runtime.kind === 'reachable' && observed.runtime.facts.workloads.length > 0)
            account.violations.push('A slot was loaded ahead of requests beside one that has the memory');
        }
        if (action.name !== 'stop') continue;
        const isUsed = (observed.activity.get(action.args.workload)?.inFlight ?? 0) > 0;
        const isNeeded = (observed.demand.get(action.slot)?.waiting ?? 0) > 0;
        if (isUsed || isNeeded) account.violations.push(`"${action.slot}" was stopped while it was used: ${action.because.message}`);
        const other = action.slot === PRIMARY ? MINE : PRIMARY;
        const isForOther = action.because.reason !== 'IdleTimedOut' && (observed.demand.get(other)?.waiting ?? 0) > 0;
        if (action.slot === MINE && action.because.reason !== 'IdleTimedOut' && !isForOther)
          account.violations.push(`"mine" was stopped without a request for another slot: ${action.because.message}`);
      }
      return made;
    },
  };
}

/** Counts again what a load says, from the requests that were sent. */
function isTrue({ needed }: Account, { at, because }: Account['loads'][number]): boolean {
  const said =
    /needed between (\d\d):(\d\d) and (\d\d):(\d\d) on (?:(\d+) of )?the last (\d+) (weekdays|weekend days|\w+days)( of use)?$/.exec(
      because,
    );
  if (said === null) return false;
  const [, fromHour, fromMinute, toHour, toMinute, times, of, kind, ofUse] = said;
  const today = Math.floor(at / DAY_MS) * DAY_MS;
  const minutes = (at - today) / MINUTE_MS;
  const [from, to] = [Number(fromHour) * 60 + Number(fromMinute), Number(toHour) * 60 + Number(toMinute)];
  if (minutes < from || minutes >= to) return false;
  const dayOf = (time: number): number => new Date(time).getUTCDay();
  const isAlike = (time: number): boolean =>
    kind === 'weekdays' ? dayOf(time) % 6 !== 0 : kind === 'weekend days' ? dayOf(time) % 6 === 0 : dayOf(time) === dayOf(today);
  const isUsed = (day: number): boolean => needed.some((time) => time >= day && time < day + DAY_MS);
  const days = Array.from({ length: DAYS }, (_, index) => today - (index + 1) * DAY_MS)
    .filter((day) => isAlike(day) && (ofUse === undefined || isUsed(day)))
    .slice(0, Number(of));
  const counted = days.filter((day) => needed.some((time) => time >= day + from * MINUTE_MS && time < day + to * MINUTE_MS));
  return counted.length === Number(times ?? of);
}

describe('loads that were learned, over 90 days with holidays, a vacation and a drift', () => {
  test.each([1])(
    'seed %i',
    async (seed) => {
      const account = await live(seed);
      expect(account.violations).toEqual([]);
      expect(account.loads.filter((load) => !isTrue(account, load))).toEqual([]);
      // A week to learn from, and what the drift and the return from the vacation cost.
      const learned = account.first.slice(10);
      const hits = learned.filter(({ waitedMs }) => waitedMs < 1000).length;
      const perDay = account.wastedMinutes / DAYS;
      process.stdout.write(
        `Seed ${seed}: ${account.loads.length} loads, first request of a day without a wait on ${hits} of ${learned.length} days, loaded ahead for ${perDay.toFixed(1)} minutes a day\n`,
      );
      expect(hits / learned.length).toBeGreaterThan(0.7);
      expect(perDay).toBeLessThan(60);
    },
    600_000,
  );
});
