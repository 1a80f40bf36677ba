/** Controllers that confuse the two clocks. The worlds of the simulation, whose wall clocks jump, must notice each of them. */
import { expect, test } from '@jest/globals';
import type { Clock } from '../../src/reconciler/ports.ts';
import { simulate } from '../support/simulation/simulate.ts';
import type { WorldClock } from '../support/simulation/world-clock.ts';

const WORLDS = 40;

/** Calls back when the wall clock shows `at`, as a timer does that is armed again whenever it comes too early. */
const atWall =
  (clock: WorldClock): Clock['at'] =>
  (at, callback) => {
    let cancel = (): void => undefined;
    const arm = (): void => {
      const leftMs = Math.max(0, at - clock.wallNow());
      cancel = clock.at(clock.now() + leftMs, () => (clock.wallNow() < at ? arm() : callback()));
    };
    arm();
    return () => cancel();
  };

const CLOCKS: Readonly<Record<string, (clock: WorldClock) => Clock>> = {
  'measures everything with the wall clock': (clock) => ({ now: clock.wallNow, wallNow: clock.wallNow, at: atWall(clock) }),
  'compares the wall clock with times of its timers': (clock) => ({ now: clock.wallNow, wallNow: clock.wallNow, at: clock.at }),
  'writes times of the monotonic clock into statuses': (clock) => ({ now: clock.now, wallNow: clock.now, at: clock.at }),
};

test.each(Object.entries(CLOCKS))('a controller that %s is noticed', async (_name, clockOf) => {
  const noticed: string[] = [];
  for (let seed = 0; seed < WORLDS && noticed.length === 0; seed += 1)
    await simulate(seed, undefined, { clockOf }).catch((error: unknown) => noticed.push(String(error)));
  expect(noticed).not.toEqual([]);
});
