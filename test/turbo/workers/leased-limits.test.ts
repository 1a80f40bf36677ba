/** Workers that share the limits of a caller with the controller, over a channel that delivers later, in any order of workers. */
import { describe, expect, jest, test, beforeEach, afterEach } from '@jest/globals';
import { createCallerLimits, createLocalAccounts, type AdmitCaller } from '../../../src/gateway/traffic/admit-caller.ts';
import type { CallerLimits } from '../../../src/schema/words/caller-limits.ts';
import { createLeasedAccounts } from '../../../src/turbo/workers/leased-limits.ts';
import { createLender } from '../../../src/turbo/workers/lent-limits.ts';
import { createRandom, type Random } from '../../support/simulation/seeded-random.ts';

const WORKERS = 3;
const KEY = 'token:1a2b3c4d';

beforeEach(() => void jest.useFakeTimers({ now: 0 }));
afterEach(() => void jest.useRealTimers());

/** A controller and its workers; messages take 1 to 20 ms. */
function createProcesses(random: Random) {
  const now = (): number => Date.now();
  const accounts = createLocalAccounts(now);
  const lender = createLender({ accounts, processes: WORKERS + 1, now });
  const workers = Array.from({ length: WORKERS }, (_, number) => {
    let lastAt = 0;
    let isGone = false;
    // The channel keeps the order of one direction.
    const later = (deliver: () => unknown): void => {
      lastAt = Math.max(lastAt, now() + random.int(1, 20));
      setTimeout(() => isGone || deliver(), lastAt - now());
    };
    const leased = createLeasedAccounts({
      now,
      ask: (ask) =>
        later(async () => {
          const answer = await lender.lend(number, ask);
          setTimeout(() => isGone || leased.answer(answer), 5);
        }),
      report: (report) => later(() => lender.take(number, report)),
    });
    return {
      admit: createCallerLimits(leased),
      die(): void {
        isGone = true;
        lender.forget(number);
      },
    };
  });
  return { workers, own: createCallerLimits(accounts), accounts };
}

async function admitted(admit: AdmitCaller, limits: CallerLimits) {
  const outcome = await admit({ key: KEY, limits }, 400);
  if (outcome?.kind !== 'admitted') return undefined;
  return outcome;
}

describe('Requests of one caller at four processes', () => {
  test.each([1, 2, 3, 4, 5, 6])('never exceed a limit of a minute, and use it up (seed %i)', async (seed) => {
    const random = createRandom(seed);
    const { workers, own } = createProcesses(random);
    const doors = [...workers.map(({ admit }) => admit), own];
    const limits = { requests_per_minute: random.int(1, 200), max_in_flight: random.int(4, 40) };
    const times: number[] = [];
    let inFlight = 0;
    let most = 0;
    const client = async (door: AdmitCaller, until: number): Promise<void> => {
      while (Date.now() < until) {
        const request = await admitted(door, limits);
        if (request !== undefined) {
          times.push(Date.now());
          inFlight += 1;
          most = Math.max(most, inFlight);
          await new Promise((resolve) => setTimeout(resolve, random.int(1, 80)));
          inFlight -= 1;
          request.settle({ tokens: undefined, isServed: true });
        }
        await new Promise((resolve) => setTimeout(resolve, random.int(5, 50)));
      }
    };
    const clients = Array.from({ length: 32 }, async (_, index) => await client(doors[index % doors.length] ?? own, 150_000));
    await jest.advanceTimersByTimeAsync(160_000);
    await Promise.all(clients);
    const busiest = Math.max(...times.map((at) => times.filter((other) => other >= at && other < at + 60_000).length));
    expect(busiest).toBeLessThanOrEqual(limits.requests_per_minute);
    // Nothing that is lent stays unused for long.
    expect(busiest).toBeGreaterThanOrEqual(Math.floor(limits.requests_per_minute * 0.95));
    expect(most).toBeLessThanOrEqual(limits.max_in_flight);
  });

  test('tokens of answers count, also more of them than were expected', async () => {
    const { workers } = createProcesses(createRandom(7));
    const limits = { tokens_per_minute: 10_000 };
    let used = 0;
    const client = async (door: AdmitCaller): Promise<void> => {
      while (Date.now() < 50_000) {
        const request = await admitted(door, limits);
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (request !== undefined) used += 250;
        request?.settle({ tokens: { input: 100, output: 150 }, isServed: true });
      }
    };
    const clients = workers.flatMap(({ admit }) => Array.from({ length: 4 }, async () => await client(admit)));
    await jest.advanceTimersByTimeAsync(55_000);
    await Promise.all(clients);
    // Nobody knows the length of the first answers.
    expect(used).toBeLessThanOrEqual(10_000 + 12 * 150);
    expect(used).toBeGreaterThanOrEqual(9500);
  });

  test('a worker that dies keeps nothing that others could use', async () => {
    const { workers, own } = createProcesses(createRandom(8));
    const limits = { max_in_flight: 4 };
    const asking = Array.from({ length: 4 }, async () => await admitted(workers[0]?.admit ?? own, limits));
    await jest.advanceTimersByTimeAsync(1000);
    expect((await Promise.all(asking)).every((each) => each !== undefined)).toBe(true);
    expect(await admitted(own, limits)).toBeUndefined();
    workers[0]?.die();
    expect(await admitted(own, limits)).toBeDefined();
  });

  test('limits that are edited count from the next request on', async () => {
    const { workers, own } = createProcesses(createRandom(9));
    const door = workers[0]?.admit ?? own;
    const ask = async (limits: CallerLimits) => {
      const asked = admitted(door, limits);
      await jest.advanceTimersByTimeAsync(30);
      return (await asked) !== undefined;
    };
    expect([await ask({ requests_per_minute: 100 }), await ask({ requests_per_minute: 1 }), await ask({ requests_per_minute: 2 })]).toEqual(
      [true, false, true],
    );
  });
});
