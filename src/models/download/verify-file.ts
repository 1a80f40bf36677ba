/** Compares a file with its catalogue entry: its size, and its checksum if that takes only seconds. */
import { readFile, stat } from 'node:fs/promises';
import { verifyUnpacked } from '../archive/file-list.ts';
import type { CatalogueFile } from '../catalogue/catalogue.ts';
import { loadDemoToolbox } from '../demo-toolbox.ts';
import { isFileWith } from './verify-hash.ts';

/** Takes two to ten seconds on common disks, and every start of a pod waits for it. */
const HASH_UP_TO_BYTES = 2 * 2 ** 30;

/** Undefined if the file is missing or differs. For an archive, `file` is the directory of its files. */
export async function verifyFile(file: string, expected: CatalogueFile, signal: AbortSignal): Promise<'content' | 'size' | undefined> {
  const { from, archive } = expected;
  if (archive !== undefined && from.kind === 'url')
    return await verifyUnpacked(file, { sha256: from.sha256, hashUpToBytes: HASH_UP_TO_BYTES }, signal);
  const facts = await stat(file).catch(() => undefined);
  if (facts?.isFile() !== true) return undefined;
  if (from.kind === 'generated') {
    const { encodeDemoFile } = await loadDemoToolbox();
    return Buffer.compare(encodeDemoFile(expected.path), await readFile(file)) === 0 ? 'content' : undefined;
  }
  if (facts.size !== from.sizeBytes) return undefined;
  if (facts.size > HASH_UP_TO_BYTES) return 'size';
  return (await isFileWith(file, from, signal)) ? 'content' : undefined;
}
