/** A clock that runs faster than the real one by a factor, so that minutes of waiting take seconds in a test against a server. */
import type { Clock } from '../../../src/reconciler/ports.ts';

export function createFastClock(factor: number): Clock {
  const from = performance.now();
  const now = (): number => from + (performance.now() - from) * factor;
  return {
    now,
    wallNow: () => Date.now() + now() - performance.now(),
    at(at, callback) {
      const timer = setTimeout(callback, Math.max(0, (at - now()) / factor));
      return () => clearTimeout(timer);
    },
  };
}
