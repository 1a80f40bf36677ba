/** A clock that runs so many times faster than the real one: what waits for minutes is done in seconds, against a real server. */
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
