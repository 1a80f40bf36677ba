/** Takes the content of a file on this machine without fetching it: by hard link or reflink, which take no room, else by copy. */
import { constants, copyFile, link, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '../../platform/error-text.ts';
import type { Result } from '../../schema/words/failure.ts';
import { createDiskRoom } from '../download/disk-room.ts';

export type TakeMethod = 'hard link' | 'reflink' | 'copy';

/** The kernel forbids most users to link to files of others (`fs.protected_hardlinks`); those are cloned or copied. */
export async function takeBytes(source: string, part: string, sizeBytes: number): Promise<Result<never> | TakeMethod> {
  const linked = await link(source, part).then(
    () => true,
    () => false,
  );
  if (linked) return 'hard link';
  const cloned = await copyFile(source, part, constants.COPYFILE_FICLONE_FORCE).then(
    () => true,
    () => false,
  );
  if (cloned) return 'reflink';
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
