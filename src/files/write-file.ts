/** Writes a file so that whoever reads it meets the old text or the new one, never a part. */
import { randomUUID } from 'node:crypto';
import { chown, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface WriteOptions {
  readonly mode: number;
  /** Kept where the process may: an edit by root must not take a file from its owner. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** Whether the text must survive a loss of power. */
  readonly sync?: boolean;
}

/** Creates the directory where there is none; throws the system's error. */
export async function writeFileAtomically(path: string, text: string, options: WriteOptions): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  // In the same directory, since a rename across file systems is none; with a dot, since sources skip those.
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.tmp`);
  try {
    const handle = await open(temporary, 'wx', options.mode);
    try {
      await handle.writeFile(text);
      // `open` applies the umask.
      await handle.chmod(options.mode);
      if (options.sync === true) await handle.sync();
    } finally {
      await handle.close();
    }
    if (options.owner !== undefined) await chown(temporary, options.owner.uid, options.owner.gid).catch(() => undefined);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
