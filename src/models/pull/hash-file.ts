/** Hashes a file. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** Large reads: the default of 64 KiB makes hashing of large files noticeably slower. */
const READ_BYTES = 2 ** 20;

/** Returns a SHA-256 hash that has been updated with the whole file and can be updated further. */
export async function hashFile(file: string, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { signal, highWaterMark: READ_BYTES })) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  return hash;
}
