/** Puts complete files into their place in the store: a reader finds either nothing or all of it. */
import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { succeeds, syncDirectory } from '../../files/write-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { Result } from '../../schema/words/failure.ts';
import { createDiskRoom } from './disk-room.ts';
import { removePart } from './resume-part.ts';

/** Also replaces a damaged file. A server that has it open keeps the old one. */
export async function placeFile(part: string, target: string): Promise<void> {
  if (!(await succeeds(link(part, target)))) await rename(part, target);
  await removePart(part);
  await syncDirectory(path.dirname(target));
}

/** Like `placeFile`, for a directory. An existing target is replaced unless `isCorrect` resolves to true. */
export async function placeDirectory(from: string, target: string, isCorrect: () => Promise<boolean>): Promise<void> {
  await syncDirectory(from);
  const isTaken = await rename(from, target).then(
    () => false,
    (error: unknown) => {
      if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error))) return true;
      throw error;
    },
  );
  if (isTaken && !(await isCorrect())) {
    const old = hiddenPath(target, `${randomUUID()}.old`);
    await rename(target, old);
    await rename(from, target);
    await rm(old, { recursive: true, force: true });
  }
  await syncDirectory(path.dirname(target));
}

/** Hidden and with the suffix of parts: no model, and `svcctl model prune` removes it after a crash. */
export function hiddenPath(target: string, name: string): string {
  return path.join(path.dirname(target), `.${path.basename(target)}.${name}.part`);
}

export type TakeMethod = 'hard link' | 'reflink' | 'copy';

/** Uses no disk space if possible. `fs.protected_hardlinks` forbids links to files of others. */
export async function takeBytes(source: string, part: string, sizeBytes: number): Promise<Result<never> | TakeMethod> {
  if (await succeeds(link(source, part))) return 'hard link';
  if (await succeeds(copyFile(source, part, constants.COPYFILE_FICLONE_FORCE))) return 'reflink';
  await rm(part, { force: true });
  const room = await createDiskRoom().reserve(path.dirname(part), () => sizeBytes);
  if (!room.ok) return room;
  await copyFile(source, part);
  const handle = await open(part, 'r');
  await handle.sync().catch((error: unknown) => {
    if (codeOf(error) !== 'EINVAL') throw error;
  });
  await handle.close();
  return 'copy';
}
