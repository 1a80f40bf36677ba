/** The window against a list of all amounts: it never forgets early, and forgets one part late at most. */
import { expect, test } from '@jest/globals';
import { SlidingWindow } from '../../../src/gateway/traffic/sliding-window.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';

const PERIOD_MS = 60_000;
const PART_MS = 1000;

test.each([1, 2, 3, 4, 5, 6, 7, 8])('counts what the last period has, and at most one part more (seed %i)', (seed) => {
  const random = createRandom(seed);
  const window = new SlidingWindow(PERIOD_MS);
  const all: { readonly at: number; readonly amount: number }[] = [];
  const within = (now: number, ms: number): number => all.reduce((sum, { at, amount }) => (at > now - ms ? sum + amount : sum), 0);
  let now = random.int(0, 1e9);
  for (let step = 0; step < 2000; step += 1) {
    now += random.int(0, step % 50 === 0 ? 2 * PERIOD_MS : 700) / 3;
    const amount = random.int(1, 20);
    window.add(amount, now);
    all.push({ at: now, amount });
    expect(window.total(now)).toBeGreaterThanOrEqual(within(now, PERIOD_MS));
    expect(window.total(now)).toBeLessThanOrEqual(within(now, PERIOD_MS + PART_MS));
    const most = random.int(0, 50);
    const waitMs = window.waitMs(most, now);
    if (waitMs > 0) expect(within(now + waitMs, PERIOD_MS)).toBeLessThanOrEqual(most);
    else expect(window.total(now)).toBeLessThanOrEqual(most);
  }
});

test('what waits the time that it is told finds room, and one moment earlier it does not', () => {
  const window = new SlidingWindow(PERIOD_MS);
  window.add(3, 500);
  window.add(2, 10_200);
  expect(window.waitMs(4, 20_000)).toBe(41_000);
  expect(window.waitMs(1, 20_000)).toBe(51_000);
  expect([window.total(60_999), window.total(61_000), window.total(70_999), window.total(71_000)]).toEqual([5, 2, 2, 0]);
});

test('a clock that stands still or goes back a little counts in the newest part', () => {
  const window = new SlidingWindow(PERIOD_MS);
  window.add(1, 5000);
  window.add(1, 3000);
  expect(window.total(5000)).toBe(2);
});

test.each([1, 2, 3, 4])(
  'another window that includes its counts has what the last period has, and at most two parts more (seed %i)',
  (seed) => {
    const random = createRandom(seed);
    const first = new SlidingWindow(PERIOD_MS);
    const all: { readonly at: number; readonly amount: number }[] = [];
    let now = random.int(0, 1e6);
    for (let step = 0; step < 200; step += 1) {
      now += random.int(1, 900);
      all.push({ at: now, amount: random.int(1, 20) });
      first.add(all.at(-1)?.amount ?? 0, now);
    }
    const within = (at: number, ms: number): number => all.reduce((sum, each) => (each.at > at - ms ? sum + each.amount : sum), 0);
    // Clocks of other processes began at other times, and messages take a while.
    for (const agoMs of [0, 3, 700, 5000]) {
      const window = new SlidingWindow(PERIOD_MS);
      const clock = random.int(0, 1e9);
      window.include(first.counts(now), agoMs, clock + agoMs);
      for (let laterMs = agoMs; laterMs < 2 * PERIOD_MS; laterMs += PART_MS / 4) {
        const total = window.total(clock + laterMs);
        expect(total).toBeGreaterThanOrEqual(within(now + laterMs, PERIOD_MS));
        expect(total).toBeLessThanOrEqual(within(now + laterMs, PERIOD_MS + 2 * PART_MS));
      }
    }
  },
);
