/**
 * Limits how many servers are asked for their health at the same time. After a start, and then once a minute, the probes of thousands of servers are due in the same
 * pass; all at once they would hold up requests for seconds, take over 100 MB, and time out because of each other.
 */
import type { Clock } from './ports.ts';

/** Resolves with undefined if the signal aborts while the work still waits for its turn. */
export type ProbeQueue = <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result | undefined>;

/** A healthy server answers within milliseconds, so more at once would not be faster. */
export const ASKED_AT_ONCE = 64;
/** A server that takes longer, because it is busy or frozen, no longer counts: many of them must not keep the others from being asked. */
export const COUNTS_FOR_MS = 1000;

export function createProbeQueue(clock: Pick<Clock, 'now' | 'at'>): ProbeQueue {
  const waiting = new Set<() => void>();
  let asked = 0;

  /** Resolves to whether there is a place; false once the signal aborts. */
  async function takePlace(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (asked < ASKED_AT_ONCE) {
      asked += 1;
      return true;
    }
    return await new Promise<boolean>((resolve) => {
      const finish = (entered: boolean): void => {
        waiting.delete(enter);
        signal.removeEventListener('abort', giveUp);
        resolve(entered);
      };
      const enter = (): void => finish(true);
      const giveUp = (): void => finish(false);
      waiting.add(enter);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The next one that waits gets the place. */
  function leavePlace(): void {
    const [next] = waiting;
    if (next === undefined) asked -= 1;
    else next();
  }

  return async (signal, work) => {
    if (!(await takePlace(signal))) return undefined;
    let counts = true;
    const leave = (): void => {
      if (counts) leavePlace();
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
