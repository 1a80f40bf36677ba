/**
 * Splits a stream of bytes into lines. Splits at the newline byte, so that characters which span two chunks stay intact. Unlike
 * `platform/line-splitter.ts`, which cuts long lines, this rejects them: part of a JSON document is of no use.
 */

const NEWLINE = 0x0a;

export function createLineBuffer(limitBytes: number) {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;

  function completeLine(end: Uint8Array): string {
    const whole = pending.length === 0 ? end : Buffer.concat([...pending, end]);
    pending = [];
    pendingBytes = 0;
    return Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('utf8');
  }

  return {
    /** Returns the lines that are complete, without newlines, or undefined if a line exceeds the limit. After that, nothing more can be read. */
    push(chunk: Uint8Array): string[] | undefined {
      const lines: string[] = [];
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        if (pendingBytes + end - start > limitBytes) return undefined;
        lines.push(completeLine(chunk.subarray(start, end)));
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
