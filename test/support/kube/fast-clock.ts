/** A clock that runs faster than the real one by a factor, so that minutes of waiting take seconds in a test against a server. */
import type { Clock } from '../../../src/reconciler/ports.ts';

export function createFastClock(factor: number): Clock {
  const startedAt = Date.now();
  const from = performance.now();
  const now = (): number => startedAt + (performance.now() - from) * factor;
  return {
    now,
    at(at, callback) {
      const timer = setTimeout(callback, Math.max(0, (at - now()) / factor));
      return () => clearTimeout(timer);
    },
  };
}
