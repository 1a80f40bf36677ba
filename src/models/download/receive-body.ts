/**
 * Writes what one response brings to the part, and hashes it where the hash stands there. While one batch is being written, the next one is received, so a connection has at most two
 * batches in memory.
 */
import type { Readable } from 'node:stream';
import { BLOCK_BYTES } from './decide/transfer-blocks.ts';
import type { Failure } from '../../schema/words/failure.ts';
import { bodyChunks } from '../pull/body-chunks.ts';
import { discard } from './open-url.ts';
import type { OrderedHash } from './ordered-hash.ts';
import type { PartBlocks } from './part-blocks.ts';
import type { ReadMemory } from '../pull/read-memory.ts';
import { storageFailure } from '../pull/storage-failure.ts';
import type { Throttle } from '../../platform/throttle.ts';

export type Broken = { readonly kind: 'broken'; readonly message: string; readonly waitMs?: number };

/** What it needs of a transfer. */
export interface Receiver {
  readonly transfer: {
    readonly source: { readonly url: string; readonly sizeBytes: number };
    readonly blocks: PartBlocks;
    readonly hash: OrderedHash;
    readonly throttle: Throttle;
    readonly directory: string;
    readonly onBytes: () => void;
  };
  readonly signal: AbortSignal;
  /** What the body arrives in. */
  readonly memory: ReadMemory;
  readonly end: (end: { readonly kind: 'failed'; readonly failure: Failure }) => void;
}

export const RESUMES = 'the next attempt resumes it';

/** Larger writes are faster than one for each chunk of a socket. */
const WRITE_BYTES = 2 ** 20;
/** On a slow connection, what has arrived is written earlier than that. */
const WRITE_EVERY_MS = 500;

/** Throws if the part cannot be written to, or if the connection breaks. What was received before is in the part then. Undefined: everything from `from` to `end` is there. */
export async function receiveBody(
  receiver: Receiver,
  body: Readable,
  { from, end }: { readonly from: number; readonly end: number },
): Promise<Broken | undefined> {
  const { source, throttle } = receiver.transfer;
  let position = from;
  let batch: Buffer[] = [];
  let batchBytes = 0;
  let writtenAt = performance.now();
  let writing: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    const [buffers, bytes] = [batch, batchBytes];
    [batch, batchBytes, writtenAt] = [[], 0, performance.now()];
    await writing;
    if (bytes === 0) return;
    writing = write(receiver, position - bytes, buffers);
    // A failure is thrown where it is awaited.
    writing.catch(() => undefined);
  };
  try {
    for await (const chunk of bodyChunks(body)) {
      if (position + chunk.length > end)
        return { kind: 'broken', message: `The server sent more than ${end - from} bytes of "${source.url}"` };
      for (let taken = 0; taken < chunk.length;) {
        const piece = chunk.subarray(taken, taken + BLOCK_BYTES - (position % BLOCK_BYTES));
        batch.push(piece);
        batchBytes += piece.length;
        position += piece.length;
        taken += piece.length;
        const isDue = batchBytes >= WRITE_BYTES || performance.now() - writtenAt >= WRITE_EVERY_MS;
        if (isDue || position % BLOCK_BYTES === 0) await flush();
      }
      await throttle.take(chunk.length, receiver.signal);
    }
  } finally {
    discard(body);
    await flush();
    await writing;
  }
  if (position === end) return undefined;
  return { kind: 'broken', message: `The download of "${source.url}" ended after ${position} of ${source.sizeBytes} bytes; ${RESUMES}` };
}

/** A disk that cannot be written to ends all connections. */
async function write({ transfer, signal, memory, end }: Receiver, offset: number, buffers: readonly Buffer[]): Promise<void> {
  const { blocks, hash, onBytes, directory } = transfer;
  const block = Math.floor(offset / BLOCK_BYTES);
  const failed = (error: unknown): void => end({ kind: 'failed', failure: storageFailure(directory, error) });
  const appended = blocks.append(block, buffers);
  // Meanwhile: if writing fails, the transfer ends, and its hash with it.
  hash.feed(offset, buffers);
  try {
    await appended;
  } catch (error) {
    failed(error);
    throw error;
  }
  const last = buffers.at(-1);
  if (last !== undefined) memory.release(last);
  onBytes();
  // Does not wait: after a restart, the hash may have to read everything that an earlier attempt left.
  if (blocks.isComplete(block)) void hash.catchUp(signal).catch((error: unknown) => (signal.aborted ? undefined : failed(error)));
}
