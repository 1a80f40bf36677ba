/**
 * Limits how many servers are asked for their health at the same time. After a start, and then once a minute, the probes of thousands of servers are due in the same
 * pass; all at once they would hold up requests for seconds, take over 100 MB, and time out because of each other.
 */
import { createPlaces } from '../platform/semaphore.ts';
import type { Clock } from './ports.ts';

/** Resolves with undefined if the signal aborts while the work still waits for its turn. */
export type ProbeQueue = <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result | undefined>;

/** A healthy server answers within milliseconds, so more at once would not be faster. */
export const ASKED_AT_ONCE = 64;
/** A server that takes longer, because it is busy or frozen, no longer counts: many of them must not keep the others from being asked. */
export const COUNTS_FOR_MS = 1000;

export function createProbeQueue(clock: Pick<Clock, 'now' | 'at'>): ProbeQueue {
  const places = createPlaces(ASKED_AT_ONCE);
  return async (signal, work) => {
    if (!(await places.take(signal))) return undefined;
    let counts = true;
    const leave = (): void => {
      if (counts) places.leave();
      counts = false;
    };
    const cancel = clock.at(clock.now() + COUNTS_FOR_MS, leave);
    try {
      return await work();
    } finally {
      cancel();
      leave();
    }
  };
}
