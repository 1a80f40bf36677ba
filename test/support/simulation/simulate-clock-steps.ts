/** Sets the wall clock of a world again and again, forward and back, in both phases of a simulation. Nothing that the controllers do may depend on it. */
import { createRandom } from './seeded-random.ts';
import type { WorldClock } from './world-clock.ts';

/** What NTP corrects, what people get wrong, a time zone, a clock without a battery. */
const STEPS_MS = [50, 2000, 90_000, 3_600_000, 86_400_000, 20 * 365 * 86_400_000] as const;
const LONGEST_PAUSE_MS = 30_000;

/** Its random numbers are its own, so that everything else in the world of this seed stays as it is. */
export function stepWallClock(clock: WorldClock, seed: number): void {
  const random = createRandom(seed ^ 0xc10c);
  const stepLater = (): void =>
    void clock.at(clock.now() + random.int(1, LONGEST_PAUSE_MS), () => {
      clock.stepWall(random.pick([-1, 1]) * random.pick(STEPS_MS));
      stepLater();
    });
  stepLater();
}
