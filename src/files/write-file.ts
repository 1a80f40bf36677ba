/** Writes a file atomically: a reader finds either the old text or the new one. */
import { randomUUID } from 'node:crypto';
import { renameSync, utimesSync } from 'node:fs';
import { chown, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, isAbsent } from '../platform/error-text.ts';

export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

export interface WriteOptions {
  readonly mode: number;
  /** Preserved if allowed: an edit by root must not take a file from its owner. */
  readonly owner?: FileOwner;
  /** Whether the text must survive a power failure. */
  readonly sync?: boolean;
  /** `existing`: the directory must exist. Default: it is created, with its parents. */
  readonly directory?: 'existing';
}

/** Throws the system's error. */
export async function writeFileAtomically(path: string, text: string, options: WriteOptions): Promise<void> {
  const temporary = await writeTemporary(path, text, options);
  try {
    await rename(temporary, path);
    if (options.sync === true) await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

export interface StagedFile {
  /** Renames the file synchronously, so that several files change together. Throws the system's error. */
  commit(): void;
  /** Removes the file unless it was committed. */
  discard(): Promise<void>;
}

/**
 * Writes a text beside its place, where errors of space or permissions occur. Throws the system's error. Call
 * `syncDirectory` after commits.
 */
export async function stageFile(path: string, text: string, options: WriteOptions): Promise<StagedFile> {
  const temporary = await writeTemporary(path, text, options);
  return {
    commit() {
      // The quiet period starts with the commit.
      const now = new Date();
      utimesSync(temporary, now, now);
      renameSync(temporary, path);
    },
    async discard() {
      await rm(temporary, { force: true }).catch(() => undefined);
    },
  };
}

/** Returns the path of a complete file beside `path`. */
async function writeTemporary(path: string, text: string, options: WriteOptions): Promise<string> {
  if (options.directory !== 'existing') await mkdir(dirname(path), { recursive: true });
  // Renames across file systems fail, and sources ignore names with a leading dot.
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
    return temporary;
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Makes a rename survive a power failure. Ignores file systems without support. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

/** Whether the promise fulfills, for calls whose error does not matter. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/** Writes a value as indented JSON, in the same way. Creates the directory, but not its parents. */
export async function writeJsonAtomically(path: string, value: unknown, mode: number): Promise<void> {
  await makeSubdirectory(dirname(path));
  await writeFileAtomically(path, `${JSON.stringify(value, undefined, 2)}\n`, { mode, directory: 'existing' });
}

/**
 * Creates a directory unless it exists. Throws `ENOENT` without its parent: a state directory that was moved must not
 * be created again, empty.
 */
export async function makeSubdirectory(directory: string, mode?: number): Promise<void> {
  await mkdir(directory, mode).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

/** Lists a directory; empty if it does not exist. Throws the system's error otherwise. */
export const listDirectory = async (directory: string): Promise<readonly string[]> => (await ifThere(readdir(directory))) ?? [];

/** Undefined if the file or process does not exist. Throws the system's error otherwise. */
export async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  return await reading.catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
}
