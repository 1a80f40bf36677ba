/** Bytes of request bodies that may lie in memory at once, over all requests (`SVC_BUFFER_LIMIT`). */

export interface BufferBudget {
  /** False: there is no room, and nothing was taken. */
  take(bytes: number): boolean;
  give(bytes: number): void;
  held(): number;
}

export function createBufferBudget(limitBytes: number): BufferBudget {
  let held = 0;
  return {
    take(bytes) {
      if (held + bytes > limitBytes) return false;
      held += bytes;
      return true;
    },
    give(bytes) {
      held -= bytes;
    },
    held: () => held,
  };
}
