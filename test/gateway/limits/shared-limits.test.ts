/** Gateways that share limits through a server, over networks that delay and lose, with servers that die: many worlds. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { AdmitCaller } from '../../../src/gateway/traffic/admit-caller.ts';
import type { CallerLimits } from '../../../src/schema/words/caller-limits.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';
import { busiest, createServer, createWorld, flood, KEY, now, SETTLED_MS, sleep } from './gateways-world.ts';

beforeEach(() => void jest.useFakeTimers({ now: 0 }));
afterEach(() => void jest.useRealTimers());
let stopping: AbortController;
beforeEach(() => void (stopping = new AbortController()));
afterEach(() => stopping.abort());

describe('While the server answers', () => {
  test.each(Array.from({ length: 5 }, (_, index) => index + 1))(
    'three gateways never exceed a limit, and use it up (seed %i)',
    async (seed) => {
      const random = createRandom(seed);
      const server = createServer(random, random.pick([2, 10, 40, 150]));
      const world = createWorld(server.connect, 3, stopping.signal);
      await jest.advanceTimersByTimeAsync(SETTLED_MS);
      expect(world.gateways.map((each) => [each.isShared(), each.gateways()])).toEqual(Array(3).fill([true, 3]));
      const limits = { requests_per_minute: random.int(1, 300), max_in_flight: random.int(4, 40) };
      const seen = flood(world, random, limits, 150_000);
      await jest.advanceTimersByTimeAsync(152_000);
      expect(busiest(seen.times)).toBeLessThanOrEqual(limits.requests_per_minute);
      // Nothing that is granted stays unused for long.
      expect(busiest(seen.times)).toBeGreaterThanOrEqual(Math.floor(limits.requests_per_minute * 0.95));
      expect(seen.mostInFlight).toBeLessThanOrEqual(limits.max_in_flight);
      expect(world.warnings).toEqual([]);
    },
    120_000,
  );

  test('a caller of one gateway gets all of its limit', async () => {
    const random = createRandom(5);
    const world = createWorld(createServer(random, 4).connect, 3, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    const seen = flood({ ...world, doors: world.doors.slice(0, 1) }, random, { requests_per_minute: 100 }, 40_000);
    await jest.advanceTimersByTimeAsync(42_000);
    expect(seen.times).toHaveLength(100);
  });

  test('one in flight at a time: the next gateway admits the next request at once', async () => {
    const world = createWorld(createServer(createRandom(3), 2).connect, 2, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    const kinds: (string | undefined)[] = [];
    for (let index = 0; index < 20; index += 1) {
      const asked = world.doors[index % 4]?.({ key: KEY, limits: { max_in_flight: 1 } }, 1);
      await jest.advanceTimersByTimeAsync(10);
      const request = await asked;
      kinds.push(request?.kind);
      if (request?.kind === 'admitted') request.settle({ tokens: undefined, isServed: true });
      await jest.advanceTimersByTimeAsync(10);
    }
    expect(kinds).toEqual(Array(20).fill('admitted'));
  });

  test('tokens count over all gateways, also more of them than were expected', async () => {
    const world = createWorld(createServer(createRandom(7), 10).connect, 3, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    let used = 0;
    const client = async (door: AdmitCaller): Promise<void> => {
      while (now() < 55_000) {
        const request = await door({ key: KEY, limits: { tokens_per_minute: 10_000, tokens_per_day: 11_000 } }, 400);
        await sleep(20);
        if (request?.kind !== 'admitted') continue;
        used += 250;
        request.settle({ tokens: { input: 100, output: 150 }, isServed: true });
      }
    };
    for (const door of world.doors) void client(door);
    await jest.advanceTimersByTimeAsync(55_000);
    // Nobody knows the length of the first answers.
    expect(used).toBeLessThanOrEqual(10_000 + 6 * 150);
    expect(used).toBeGreaterThanOrEqual(9500);
  });

  test('an edit of the limits counts from the next request on', async () => {
    const world = createWorld(createServer(createRandom(9), 5).connect, 2, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    const ask = async (door: number, limits: CallerLimits) => {
      const asked = world.doors[door]?.({ key: KEY, limits }, 1);
      await jest.advanceTimersByTimeAsync(30);
      return (await asked)?.kind;
    };
    const kinds = [
      await ask(0, { requests_per_minute: 100 }),
      await ask(2, { requests_per_minute: 1 }),
      await ask(2, { requests_per_minute: 2 }),
      await ask(0, { requests_per_minute: 2 }),
    ];
    expect(kinds).toEqual(['admitted', 'refuse', 'admitted', 'refuse']);
  });

  test('a refusal says when there is room again over all gateways, and what remains', async () => {
    const world = createWorld(createServer(createRandom(9), 2).connect, 2, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    const ask = async (door: number) => {
      const asked = world.doors[door]?.({ key: KEY, limits: { requests_per_minute: 2 } }, 1);
      await jest.advanceTimersByTimeAsync(30);
      const answer = await asked;
      return Object.fromEntries(answer?.headerLines.split('\r\n').map((line) => line.split(': ')) ?? []);
    };
    expect(await ask(0)).toMatchObject({ 'x-ratelimit-limit-requests': '2', 'x-ratelimit-remaining-requests': '1' });
    await jest.advanceTimersByTimeAsync(20_000);
    expect(await ask(2)).toMatchObject({ 'x-ratelimit-limit-requests': '2', 'x-ratelimit-remaining-requests': '0' });
    const refused = Number((await ask(2))['retry-after-ms']);
    expect([refused > 39_000, refused < 42_000]).toEqual([true, true]);
  });
});

describe('While connections break', () => {
  test.each(Array.from({ length: 4 }, (_, index) => index + 101))(
    'no limit is exceeded by more than 1 %% and a request (seed %i)',
    async (seed) => {
      const random = createRandom(seed);
      const server = createServer(random, random.pick([2, 10, 40]), random.pick([0.001, 0.005]));
      const world = createWorld(server.connect, 3, stopping.signal);
      await jest.advanceTimersByTimeAsync(SETTLED_MS);
      const limits = { requests_per_minute: random.int(30, 300) };
      const seen = flood(world, random, limits, 200_000);
      await jest.advanceTimersByTimeAsync(202_000);
      expect(busiest(seen.times)).toBeLessThanOrEqual(Math.ceil(limits.requests_per_minute * 1.01) + 1);
      expect(busiest(seen.times)).toBeGreaterThanOrEqual(Math.floor(limits.requests_per_minute * 0.5));
    },
    120_000,
  );
});

describe('Servers that die, hang and forget', () => {
  const FAULTS = ['kill', 'freeze', 'forget', 'clock forward', 'clock back'] as const;
  test.each(Array.from({ length: 10 }, (_, index) => [FAULTS[index % FAULTS.length] ?? 'kill', index + 201] as const))(
    '%s: each gateway enforces its share, and the sum is right again afterwards (seed %i)',
    async (fault, seed) => {
      const random = createRandom(seed);
      const server = createServer(random, random.pick([2, 10, 40]));
      const world = createWorld(server.connect, 3, stopping.signal);
      await jest.advanceTimersByTimeAsync(SETTLED_MS);
      const limits = { requests_per_minute: random.int(30, 300) };
      const seen = flood(world, random, limits, 260_000);
      await jest.advanceTimersByTimeAsync(random.int(500, 70_000));
      const lostAt = now();
      if (fault === 'forget') server.forget();
      else if (fault === 'clock forward') server.stepClock(3_600_000);
      else if (fault === 'clock back') server.stepClock(-3_600_000);
      else {
        const resume = fault === 'freeze' ? server.freeze() : (server.kill(), server.start);
        await jest.advanceTimersByTimeAsync(random.int(2000, 90_000));
        expect(world.gateways.map((each) => each.isShared())).toEqual([false, false, false]);
        expect(world.gateways.map((each) => typeof each.problem())).toEqual(['string', 'string', 'string']);
        resume();
      }
      const backAt = now();
      await jest.advanceTimersByTimeAsync(SETTLED_MS);
      expect(world.gateways.map((each) => [each.isShared(), each.problem()])).toEqual(Array(3).fill([true, undefined]));
      await jest.advanceTimersByTimeAsync(264_000 - now());
      const { requests_per_minute: limit } = limits;
      // What others were granted just before is not known, and shares are rounded up. Whoever deletes the counts of a
      // server that runs, or sets its clock forward, is noticed after a second.
      if (fault === 'kill' || fault === 'freeze') expect(busiest(seen.times)).toBeLessThanOrEqual(Math.ceil(limit * 1.05) + 2);
      expect(busiest(seen.times, 0, lostAt)).toBeLessThanOrEqual(limit);
      expect(busiest(seen.times, backAt + SETTLED_MS)).toBeLessThanOrEqual(limit);
      expect(busiest(seen.times, backAt + SETTLED_MS)).toBeGreaterThanOrEqual(Math.floor(limit * 0.9));
    },
    120_000,
  );

  test('a server that is back grants nothing before all had the time to report what they used meanwhile', async () => {
    const random = createRandom(6);
    const server = createServer(random, 5);
    const world = createWorld(server.connect, 3, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    server.kill();
    const limits = { requests_per_minute: 90 };
    const meanwhile = flood(world, random, limits, now() + 20_000);
    await jest.advanceTimersByTimeAsync(21_000);
    expect(meanwhile.times.length).toBeGreaterThan(80);
    // The others are late.
    server.cut(1);
    server.cut(2);
    server.start();
    await jest.advanceTimersByTimeAsync(2500);
    const afterwards = flood({ ...world, doors: world.doors.slice(0, 2) }, random, limits, now() + 2000);
    await jest.advanceTimersByTimeAsync(2100);
    expect(meanwhile.times.length + afterwards.times.length).toBeLessThanOrEqual(92);
  });

  test('a gateway that alone has lost it admits its share at most, besides what the others use', async () => {
    const random = createRandom(4);
    const server = createServer(random, 5);
    const world = createWorld(server.connect, 3, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    server.cut(0);
    const limits = { requests_per_minute: 90 };
    const alone = flood({ ...world, doors: world.doors.slice(0, 2) }, random, limits, 150_000);
    const others = flood({ ...world, doors: world.doors.slice(2) }, random, limits, 150_000);
    await jest.advanceTimersByTimeAsync(152_000);
    expect(world.gateways.map((each) => each.isShared())).toEqual([false, true, true]);
    expect(busiest(alone.times)).toBeLessThanOrEqual(30);
    expect(busiest(others.times)).toBeLessThanOrEqual(90);
    expect(alone.times.length).toBeGreaterThan(30);
  });

  test('requests go on without waiting for a server that hangs, but for the first', async () => {
    const server = createServer(createRandom(1), 2);
    const world = createWorld(server.connect, 2, stopping.signal);
    await jest.advanceTimersByTimeAsync(SETTLED_MS);
    server.freeze();
    const waits: number[] = [];
    for (let index = 0; index < 5; index += 1) {
      const from = now();
      const done = Promise.resolve(world.doors[0]?.({ key: KEY, limits: { requests_per_minute: 100 } }, 1)).then((answer) => {
        waits.push(now() - from);
        expect(answer?.kind).toBe('admitted');
      });
      await jest.advanceTimersByTimeAsync(2000);
      await done;
    }
    expect(waits[0]).toBeLessThanOrEqual(500);
    expect(waits.slice(1)).toEqual([0, 0, 0, 0]);
  });

  test('says once that the counts are not shared, and tries again with pauses that grow', async () => {
    let attempts = 0;
    const world = createWorld(
      async () => {
        attempts += 1;
        throw new Error('connect ECONNREFUSED');
      },
      1,
      stopping.signal,
    );
    await jest.advanceTimersByTimeAsync(60_000);
    expect(world.warnings).toEqual([expect.stringContaining('connect ECONNREFUSED')]);
    expect(attempts).toBeGreaterThan(25);
    expect(attempts).toBeLessThan(40);
  });
});
