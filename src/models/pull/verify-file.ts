/** Compares a file in the store with its catalogue entry: its size, and its content if hashing it takes only seconds. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { CatalogueFile } from '../catalogue.ts';
import { encodeDemoModel } from '../demo/demo-models.ts';

/** Takes two to ten seconds with common disks, and every start of a pod waits for it. */
const HASH_UP_TO_BYTES = 2 * 2 ** 30;
/** Large reads: the default of 64 KiB makes hashing of large files noticeably slower. */
const READ_BYTES = 2 ** 20;

/** Returns what was found to match, or undefined if the file is missing or differs. `file` is an absolute path. */
export async function verifyFile(file: string, expected: CatalogueFile, signal: AbortSignal): Promise<'content' | 'size' | undefined> {
  const facts = await stat(file).catch(() => undefined);
  if (facts?.isFile() !== true) return undefined;
  const { from } = expected;
  if (from.kind === 'generated') return Buffer.compare(encodeDemoModel(from.model), await readFile(file)) === 0 ? 'content' : undefined;
  if (facts.size !== from.sizeBytes) return undefined;
  if (facts.size > HASH_UP_TO_BYTES) return 'size';
  return (await hashFile(file, signal)).digest('hex') === from.sha256.toLowerCase() ? 'content' : undefined;
}

/** Returns a SHA-256 hash that has been updated with the whole file and can be updated further. */
export async function hashFile(file: string, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { signal, highWaterMark: READ_BYTES })) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  return hash;
}
