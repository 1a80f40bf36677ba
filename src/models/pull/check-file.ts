/** Whether a file of the store is what the catalogue says: its size, and its content where that takes seconds, not minutes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { CatalogueFile } from '../catalogue.ts';
import { encodeDemoModel } from '../demo/demo-models.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export type FileCheck =
  | { readonly kind: 'good'; readonly sizeBytes: number; readonly by: 'content' | 'size' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'bad'; readonly message: string };

/** Two to ten seconds at the speed of common disks; every start of a pod waits for this. */
const HASH_UP_TO_BYTES = 2 * 2 ** 30;

/** `file` is absolute. */
export async function checkFile(file: string, expected: CatalogueFile, signal: AbortSignal): Promise<FileCheck> {
  const size = await sizeOf(file);
  if (typeof size !== 'number') return size;
  if (expected.from.kind === 'generated') {
    const same = Buffer.compare(encodeDemoModel(expected.from.model), await readFile(file)) === 0;
    return same
      ? { kind: 'good', sizeBytes: size, by: 'content' }
      : { kind: 'bad', message: 'its content is not the one that is generated' };
  }
  if (expected.sizeBytes !== undefined && size !== expected.sizeBytes)
    return { kind: 'bad', message: `it has ${size} bytes, and the catalogue says ${expected.sizeBytes}` };
  if (expected.sha256 === undefined || size > HASH_UP_TO_BYTES) return { kind: 'good', sizeBytes: size, by: 'size' };
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { signal, highWaterMark: 2 ** 20 })) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  const digest = hash.digest('hex');
  if (digest === expected.sha256.toLowerCase()) return { kind: 'good', sizeBytes: size, by: 'content' };
  return { kind: 'bad', message: `its SHA-256 is "${digest}", and the catalogue says "${expected.sha256}"` };
}

async function sizeOf(file: string): Promise<number | Exclude<FileCheck, { readonly kind: 'good' }>> {
  try {
    const facts = await stat(file);
    return facts.isFile() ? facts.size : { kind: 'bad', message: 'it is no plain file' };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    return { kind: 'bad', message: messageOf(error) };
  }
}
