/** Limits the bytes of request bodies in memory over all requests (`SVC_BUFFER_LIMIT`). */

export interface BufferBudget {
  /** Returns false, and reserves nothing, if the limit would be exceeded. */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  reservedBytes(): number;
}

export function createBufferBudget(limitBytes: number): BufferBudget {
  let reserved = 0;
  return {
    reserve(bytes) {
      if (reserved + bytes > limitBytes) return false;
      reserved += bytes;
      return true;
    },
    release(bytes) {
      reserved -= bytes;
    },
    reservedBytes: () => reserved,
  };
}
