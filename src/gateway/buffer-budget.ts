/** Limits the bytes of request bodies over all requests, in memory (`SVC_BUFFER_LIMIT`) or on disk (`SVC_SPOOL_LIMIT`). */

export type BufferBudget = ReturnType<typeof createBufferBudget>;

export function createBufferBudget(limitBytes: number) {
  let reserved = 0;
  return {
    /** Returns false, and reserves nothing, if the limit would be exceeded. */
    reserve(bytes: number) {
      if (reserved + bytes > limitBytes) return false;
      reserved += bytes;
      return true;
    },
    release(bytes: number) {
      reserved -= bytes;
    },
    reservedBytes: () => reserved,
  };
}
