/** The list of the files of an unpacked archive. It appears with them, so a directory with a list is complete. */
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { LARGE_TEXT_BYTES, readRegularFile } from '../../files/regular-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { FILE_LIST } from '../decide/judge-member.ts';
import { hashFile } from '../download/verify-hash.ts';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const FileList = z.object({
  version: z.literal(1),
  archive: Sha256,
  files: z.array(z.object({ /** Relative to the directory. */ path: z.string(), sizeBytes: z.int().min(0), sha256: Sha256 })).min(1),
});
export type FileList = z.output<typeof FileList>;
export type UnpackedFile = FileList['files'][number];

/** Undefined if the directory was unpacked from an archive with another SHA-256, or does not exist. */
export async function readFileList(directory: string, sha256: readonly string[]): Promise<FileList | undefined> {
  const text = await readRegularFile(path.join(directory, FILE_LIST), { mostBytes: LARGE_TEXT_BYTES }).catch(() => undefined);
  const list = text === undefined ? undefined : FileList.safeParse(parseJson(text)).data;
  return list !== undefined && sha256.includes(list.archive) ? list : undefined;
}

export const bytesOf = ({ files }: FileList): number => files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

/** Undefined if a file is missing or differs. Compares content only up to `hashUpToBytes`. */
export async function verifyUnpacked(
  directory: string,
  { sha256, hashUpToBytes }: { readonly sha256: readonly string[]; readonly hashUpToBytes: number },
  signal: AbortSignal,
): Promise<'content' | 'size' | undefined> {
  const list = await readFileList(directory, sha256);
  if (list === undefined) return undefined;
  const isHashed = bytesOf(list) <= hashUpToBytes;
  for (const file of list.files) {
    const facts = await lstat(path.join(directory, file.path)).catch(() => undefined);
    if (facts?.isFile() !== true || facts.size !== file.sizeBytes) return undefined;
    if (isHashed && (await hashFile(path.join(directory, file.path), signal)).digest('hex') !== file.sha256) return undefined;
  }
  return isHashed ? 'content' : 'size';
}
