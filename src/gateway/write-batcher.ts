/**
 * Joins what comes faster than anyone can see. A piece that follows the one before within a millisecond waits for the end of that millisecond and goes out with
 * its neighbours: with many fast streams the system calls, one a piece, are most of what the gateway costs. A piece after a pause never waits.
 */

export interface WriteBatch {
  /** Called once for each `hold`. */
  flushBatch(): void;
}

export interface WriteBatcher {
  /** Flushes the burst within about a millisecond. */
  hold(burst: WriteBatch): void;
  close(): void;
}

export const BATCH_MS = 1;

export function createWriteBatcher(): WriteBatcher {
  let held: WriteBatch[] = [];
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    timer = undefined;
    const due = held;
    held = [];
    for (const burst of due) burst.flushBatch();
  }

  return {
    hold(burst) {
      held.push(burst);
      timer ??= setTimeout(flush, BATCH_MS);
    },
    close() {
      clearTimeout(timer);
      held = [];
    },
  };
}
