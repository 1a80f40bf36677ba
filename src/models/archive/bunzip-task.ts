/** What the thread that decompresses is started with, and how the two threads count the pieces that are on their way. */

export interface BunzipTask {
  /** Absolute path. */
  readonly file: string;
  /** More than this comes out of no honest archive. */
  readonly maxBytes: number;
  /** Shared: at the index `PENDING` the number of pieces that were sent and not yet used. */
  readonly counters: SharedArrayBuffer;
}

export const PENDING = 0;
/** Pieces that may wait to be written. */
export const MAX_PENDING = 8;
