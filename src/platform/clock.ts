/** The real clock. */
import type { Clock } from '../reconciler/ports.ts';

/** The longest delay of `setTimeout`; a longer one would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => Date.now(),
    at(at, callback) {
      let timer: NodeJS.Timeout | undefined;
      // A timer may fire a millisecond early, and the wall clock may have been set back in the meantime.
      const arm = (): void => {
        const leftMs = at - Date.now();
        timer = setTimeout(() => (at > Date.now() ? arm() : callback()), Math.min(Math.max(leftMs, 0), LONGEST_MS));
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}
