/** Bytes to lines. Split at the byte of the newline, so that characters which lie over the border of two chunks stay whole. */
export interface LineBuffer {
  /** The lines that are complete now, without their newlines. Undefined when one is longer than the limit: nothing can be read after that. */
  push(chunk: Uint8Array): string[] | undefined;
}

const NEWLINE = 0x0a;

export function createLineBuffer(limitBytes: number): LineBuffer {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;

  function take(end: Uint8Array): string {
    const whole = pending.length === 0 ? end : Buffer.concat([...pending, end]);
    pending = [];
    pendingBytes = 0;
    return Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('utf8');
  }

  return {
    push(chunk) {
      const lines: string[] = [];
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        if (pendingBytes + end - start > limitBytes) return undefined;
        lines.push(take(chunk.subarray(start, end)));
        start = end + 1;
      }
      if (start < chunk.length) {
        pending.push(chunk.subarray(start));
        pendingBytes += chunk.length - start;
      }
      return pendingBytes > limitBytes ? undefined : lines;
    },
  };
}
