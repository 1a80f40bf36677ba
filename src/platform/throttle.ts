/** Limits the bandwidth of all downloads that share it. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Throttle {
  /**
   * Resolves when these bytes are within the limit. Called after they were received, so that the connection is read
   * more slowly.
   */
  take(bytes: number, signal: AbortSignal): Promise<void>;
}

export const UNLIMITED: Throttle = { take: async () => undefined };

/** What may arrive at once after a pause. */
const AT_ONCE_MS = 100;

export function createThrottle(bytesPerSecond: number | undefined): Throttle {
  if (bytesPerSecond === undefined) return UNLIMITED;
  /** When everything that was taken so far is within the limit. */
  let paidAt = 0;
  return {
    async take(bytes, signal) {
      const now = performance.now();
      paidAt = Math.max(paidAt, now - AT_ONCE_MS) + (1000 * bytes) / bytesPerSecond;
      if (paidAt > now) await sleep(paidAt - now, undefined, { signal });
    },
  };
}
