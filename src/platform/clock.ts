/** The real clock. */
import type { Clock } from '../reconciler/ports.ts';

/** What `setTimeout` can hold; over it, it would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => Date.now(),
    at(at, callback) {
      let timer: NodeJS.Timeout | undefined;
      // Timers may fire a millisecond early, and the wall clock may be set back meanwhile.
      const arm = (): void => {
        const leftMs = at - Date.now();
        timer = setTimeout(() => (at > Date.now() ? arm() : callback()), Math.min(Math.max(leftMs, 0), LONGEST_MS));
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}
