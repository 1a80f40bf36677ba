/** Joins small writes of many streams, so that fewer system calls are needed. */

export interface BatchedWriter {
  /** Writes what has been collected. Called once for each `add`. */
  writeBatch(): void;
}

/** Pieces that follow each other within this time are joined. */
export const BATCH_MS = 1;

export type WriteBatcher = ReturnType<typeof createWriteBatcher>;

/**
 * Joins writes that follow each other within a millisecond. The first piece after a pause is written at once; pieces
 * that follow it closely are collected and go out together, because with many fast streams one system call per piece is
 * most of what the gateway costs.
 */
export function createWriteBatcher() {
  let queued: BatchedWriter[] = [];
  let timer: NodeJS.Timeout | undefined;

  function writeAll(): void {
    timer = undefined;
    const due = queued;
    queued = [];
    for (const writer of due) writer.writeBatch();
  }

  return {
    /** Calls `writeBatch` of the writer after about a millisecond. */
    add(writer: BatchedWriter) {
      queued.push(writer);
      timer ??= setTimeout(writeAll, BATCH_MS);
    },
  };
}
