/**
 * The SHA-256 of a download whose blocks arrive in any order. Data out of order is read back from the part once
 * everything before it is complete. Blocks of an earlier attempt are compared with their CRC.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { FileVersion } from '../catalogue/catalogue.ts';
import { BLOCK_BYTES } from './decide/part-journal.ts';
import type { PartBlocks } from './resume-part.ts';

export type OrderedHash = ReturnType<typeof createOrderedHash>;

export function createOrderedHash(blocks: PartBlocks, sizeBytes: number) {
  const hash = createHash('sha256');
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
      if (isDamaged && from === 0) return blocks.forget(block);
      hash.update(buffer);
      position += buffer.length;
    }
  }

  return {
    /** Ignores data that is out of order. */
    feed(offset: number, buffers: readonly Buffer[]): void {
      if (offset !== position || running !== undefined) return;
      for (const buffer of buffers) {
        hash.update(buffer);
        position += buffer.length;
      }
    },
    /** Concurrent calls share one run. `begins`: without a connection yet, an incomplete block is hashed as well. */
    async catchUp(signal: AbortSignal, begins?: 'begins'): Promise<void> {
      running ??= readOn(signal, begins !== undefined).finally(() => {
        running = undefined;
      });
      await running;
    },
    async idle(): Promise<void> {
      await running?.catch(() => undefined);
    },
    isFinished: (): boolean => position >= sizeBytes,
    /** Call it once, at the end. */
    digest: (): string => hash.digest('hex'),
  };
}

/** The default of 64 KiB makes hashing large files noticeably slower. */
const READ_BYTES = 2 ** 20;

/** Can be updated further. */
export async function hashFile(file: string, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { signal, highWaterMark: READ_BYTES })) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  return hash;
}

/** Undefined if the file is none of these versions, or does not exist. */
export async function versionOfFile(file: string, versions: readonly FileVersion[], signal: AbortSignal): Promise<FileVersion | undefined> {
  const facts = await stat(file).catch(() => undefined);
  const ofSize = facts?.isFile() === true ? versions.filter(({ sizeBytes }) => sizeBytes === facts.size) : [];
  if (ofSize.length === 0) return undefined;
  const digest = (await hashFile(file, signal)).digest('hex');
  return ofSize.find(({ sha256 }) => sha256.toLowerCase() === digest);
}
