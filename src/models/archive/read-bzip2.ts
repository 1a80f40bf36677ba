/** Reads a bzip2 file piece by piece. Another thread decompresses it, no faster than it is read. */
import { on } from 'node:events';
import { Worker } from 'node:worker_threads';

/** One block of bzip2 takes less than 10 MB. */
const HEAP_MB = 64;

/** Throws if the file is damaged or contains more than `maxBytes`, or if the signal aborts. `file`: absolute path. */
export async function* readBzip2(file: string, maxBytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const counters = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const pending = new Int32Array(counters);
  const task: BunzipTask = { file, maxBytes, counters };
  const worker = new Worker(new URL('bunzip-worker.ts', import.meta.url), {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: HEAP_MB },
  });
  try {
    for await (const [piece] of on(worker, 'message', { signal, close: ['exit'] })) {
      if (piece instanceof Uint8Array) yield piece;
      Atomics.sub(pending, PENDING, 1);
      Atomics.notify(pending, PENDING, MAX_PENDING);
    }
  } finally {
    await worker.terminate();
  }
}

export interface BunzipTask {
  readonly file: string;
  readonly maxBytes: number;
  /** Shared: the number of pieces in flight at the index `PENDING`. */
  readonly counters: SharedArrayBuffer;
}

export const PENDING = 0;
export const MAX_PENDING = 8;
