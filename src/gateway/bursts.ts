/**
 * Joins what comes faster than anyone can see. A piece that follows the one before within a millisecond waits for the end of that millisecond and goes out with
 * its neighbours: with many fast streams the system calls, one a piece, are most of what the gateway costs. A piece after a pause never waits.
 */

export interface Burst {
  /** Called once for each `hold`. */
  flushBurst(): void;
}

export interface Bursts {
  /** Flushes the burst within about a millisecond. */
  hold(burst: Burst): void;
  close(): void;
}

export const BURST_MS = 1;

export function createBursts(): Bursts {
  let held: Burst[] = [];
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    timer = undefined;
    const due = held;
    held = [];
    for (const burst of due) burst.flushBurst();
  }

  return {
    hold(burst) {
      held.push(burst);
      timer ??= setTimeout(flush, BURST_MS);
    },
    close() {
      clearTimeout(timer);
      held = [];
    },
  };
}
