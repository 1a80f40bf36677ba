/** The real clock. */
import type { Clock } from '../reconciler/ports.ts';

/** The longest delay of `setTimeout`; a longer one would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    at(at, callback) {
      let timer: NodeJS.Timeout | undefined;
      // A timer may fire a millisecond early.
      const arm = (): void => {
        const leftMs = Math.ceil(at - performance.now());
        timer = setTimeout(() => (at > performance.now() ? arm() : callback()), Math.min(Math.max(leftMs, 0), LONGEST_MS));
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}
