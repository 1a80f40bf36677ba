/** Writes the body of one response to the part. One batch is written while the next is received. */
import { on } from 'node:events';
import type { Readable } from 'node:stream';
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { FileVersion } from '../catalogue/catalogue.ts';
import { BLOCK_BYTES } from './decide/part-journal.ts';
import type { Failure } from '../../schema/words/failure.ts';
import type { ExpectedBytes } from './decide/judge-response.ts';
import { discard, type Bearer } from './open-url.ts';
import type { OrderedHash } from './verify-hash.ts';
import type { PartBlocks } from './resume-part.ts';
import { storageFailure } from './disk-room.ts';
import type { Throttle } from '../../platform/throttle.ts';

export interface TransferSource extends Omit<ExpectedBytes, 'from' | 'etag'> {
  readonly bearer?: Bearer | undefined;
  /** Set for a server with the API of the Hugging Face Hub. */
  readonly hub?: { readonly page: string; readonly repo: string } | undefined;
  readonly others?: readonly FileVersion[] | undefined;
}

export interface Transfer {
  readonly source: TransferSource;
  readonly blocks: PartBlocks;
  readonly hash: OrderedHash;
  readonly silenceMs: number;
  readonly throttle: Throttle;
  readonly connections: number;
  /** A first connection at least this fast stays the only one. Infinity: all open at once. */
  readonly fastBytesPerSecond: number;
  /** Attempts of a connection in a row without data, and its first back-off, which doubles each time. */
  readonly patience: { readonly attempts: number; readonly pauseMs: number };
  readonly directory: string;
  readonly onBytes: () => void;
  readonly onWait: (waitMs: number, message: string) => void;
}

export type Broken = { readonly kind: 'broken'; readonly message: string; readonly waitMs?: number };

export interface Receiver {
  readonly transfer: Transfer;
  readonly signal: AbortSignal;
  readonly memory: ReadMemory;
  readonly end: (end: { readonly kind: 'failed'; readonly failure: Failure }) => void;
}

export const RESUMES = 'the next attempt resumes it';

/** One write per chunk would be slower. */
const WRITE_BYTES = 2 ** 20;
const WRITE_EVERY_MS = 500;

/** Undefined: complete. Throws if a write or the connection fails; earlier data is in the part. */
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
    // Failures are thrown where the promise is awaited.
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
  // Concurrently: if writing fails, the transfer ends, and its hash with it.
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
  // Not awaited: after a restart, this may read everything that an earlier attempt left.
  if (blocks.isComplete(block)) void hash.catchUp(signal).catch((error: unknown) => (signal.aborted ? undefined : failed(error)));
}

const AHEAD = { highWaterMark: 2, lowWaterMark: 1 } as const;

/** The iterator of a stream would join and copy chunks. A caller that stops early must destroy the body. */
export async function* bodyChunks(body: Readable): AsyncGenerator<Buffer, void> {
  try {
    for await (const [chunk] of on(body, 'data', { ...AHEAD, close: ['end', 'close'] })) if (Buffer.isBuffer(chunk)) yield chunk;
  } catch (error) {
    // A failed stream emits nothing more, but may still hold data that arrived while it was paused.
    const rest: unknown = body.read();
    if (Buffer.isBuffer(rest)) yield rest;
    throw error;
  }
}

/**
 * Memory that the sockets of one download reuse: otherwise each read allocates 64 KiB, which doubles processor time. A
 * slab is free again once its data was written. A body must be read and written completely before the next request, so
 * that slabs are written in the order in which they were filled.
 */
export interface ReadMemory {
  readonly connect: buildConnector.connector;
  /** Frees memory up to this piece, which was written. Ignores other memory. */
  release(piece: Buffer): void;
}

const SLAB_BYTES = 512 * 1024;
/** A connection needs up to ten; more are left to the garbage collector. */
const MAX_SLABS = 16;
/** A slab with less space is full: reads of a few bytes would be slow. */
const LEAST_READ_BYTES = 64 * 1024;

export function createReadMemory(): ReadMemory {
  const owners = new WeakMap<ArrayBufferLike, ReturnType<typeof createSlabs>>();
  return {
    connect(options, callback) {
      const slabs: ReturnType<typeof createSlabs> = createSlabs((slab) => owners.set(slab.buffer, slabs));
      const onread = {
        buffer: () => slabs.room(),
        /** Called as a method of the socket. False pauses the socket until its data is read. */
        callback(this: Socket, bytes: number): boolean {
          return this.push(slabs.take(bytes));
        },
      };
      // With HTTP/2, all requests of a download would share one connection.
      buildConnector({ allowH2: false, onread })(options, callback);
    },
    release: (piece) => owners.get(piece.buffer)?.release(piece.buffer),
  };
}

function createSlabs(onNew: (slab: Buffer) => void) {
  /** Oldest first; the last one is being filled. */
  const inUse: Buffer[] = [];
  const free: Buffer[] = [];
  let filled = SLAB_BYTES;
  const current = (): Buffer => inUse.at(-1) ?? begin();
  const begin = (): Buffer => {
    const slab = free.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES);
    onNew(slab);
    inUse.push(slab);
    if (inUse.length > MAX_SLABS) inUse.shift();
    filled = 0;
    return slab;
  };
  return {
    /** The same until something is taken. */
    room(): Buffer {
      if (SLAB_BYTES - filled < LEAST_READ_BYTES) begin();
      return current().subarray(filled);
    },
    take(bytes: number): Buffer {
      const piece = current().subarray(filled, filled + bytes);
      filled += bytes;
      return piece;
    },
    release(memory: ArrayBufferLike): void {
      // A slab that is free or left to the garbage collector says nothing about the others.
      if (!inUse.some(({ buffer }) => buffer === memory)) return;
      while (inUse[0] !== undefined && inUse[0].buffer !== memory) free.push(...inUse.splice(0, 1));
    },
  };
}
