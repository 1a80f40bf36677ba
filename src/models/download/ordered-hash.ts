/**
 * Computes the SHA-256 of a download while its blocks arrive in any order. What arrives exactly where the hash stands is hashed directly; the rest is read
 * again from the part as soon as everything before it is complete, mostly from the page cache. Blocks of an earlier attempt are compared with their CRC.
 */
import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { createReadStream } from 'node:fs';
import { BLOCK_BYTES } from './decide/transfer-blocks.ts';
import type { PartBlocks } from './part-blocks.ts';

export interface OrderedHash {
  /** Takes what has just been written at `offset` of the file. */
  feed(offset: number, buffers: readonly Buffer[]): void;
  /**
   * Reads the complete blocks that are not yet hashed. A call while another one is at work joins it. `begins`: no connection is open yet, so what there is
   * of an incomplete block is read as well, and the first connection continues exactly there.
   */
  catchUp(signal: AbortSignal, begins?: 'begins'): Promise<void>;
  /** Resolves when no call is at work. */
  idle(): Promise<void>;
  isFinished(): boolean;
  /** Hexadecimal. Call it once, when everything is hashed. */
  digest(): string;
}

export function createOrderedHash(blocks: PartBlocks, sizeBytes: number): OrderedHash {
  const hash = createHash('sha256');
  /** One for all blocks, since a new one for each would be garbage of the size of the file. */
  const memory = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, sizeBytes));
  let position = 0;
  let running: Promise<void> | undefined;

  async function readOn(signal: AbortSignal, partial: boolean): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const block = Math.floor(position / BLOCK_BYTES);
      const from = position % BLOCK_BYTES;
      const { bytes, crc } = blocks.record(block);
      if (position >= sizeBytes || bytes <= from || !(partial || blocks.isComplete(block))) return;
      const buffer = memory.subarray(0, bytes - from);
      const { bytesRead } = await blocks.handle.read(buffer, 0, buffer.length, position);
      const isDamaged =
        bytesRead < buffer.length || (blocks.isInherited(block) && from === 0 && crc !== undefined && crc32(buffer) !== crc);
      if (isDamaged && from === 0) {
        blocks.forget(block);
        return;
      }
      hash.update(buffer);
      position += buffer.length;
    }
  }

  return {
    feed(offset, buffers) {
      if (offset !== position || running !== undefined) return;
      for (const buffer of buffers) {
        hash.update(buffer);
        position += buffer.length;
      }
    },
    async catchUp(signal, begins) {
      running ??= readOn(signal, begins !== undefined).finally(() => {
        running = undefined;
      });
      await running;
    },
    async idle() {
      await running?.catch(() => undefined);
    },
    isFinished: () => position >= sizeBytes,
    digest: () => hash.digest('hex'),
  };
}

/** Hashes a file. */

/** Large reads: the default of 64 KiB makes hashing of large files noticeably slower. */
const READ_BYTES = 2 ** 20;

/** Returns a SHA-256 hash that has been updated with the whole file and can be updated further. */
export async function hashFile(file: string, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { signal, highWaterMark: READ_BYTES })) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  return hash;
}
