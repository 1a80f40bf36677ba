/** Writes a file atomically: a reader finds either the old text or the new one. */
import { existsSync, renameSync, statfsSync, utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { codeOf, isAbsent, messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { formatSize } from '../schema/words/quantities.ts';
import { OPEN_FLAGS, SYSTEM_DISK, type Disk } from './regular-file.ts';

export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

export interface WriteOptions {
  readonly mode: number;
  /** Preserved if allowed: an edit by root must not take a file from its owner. */
  readonly owner?: FileOwner;
  /** Whether the text must survive a power failure. `file`: the caller calls `syncDirectory` after several writes. */
  readonly sync?: boolean | 'file';
  /** `existing`: the directory must exist. Default: it is created, with its parents. */
  readonly directory?: 'existing';
  readonly disk?: Disk | undefined;
}

/** Throws the system's error. */
export async function writeFileAtomically(path: string, text: string | Uint8Array, options: WriteOptions): Promise<void> {
  const { disk = SYSTEM_DISK } = options;
  const temporary = await writeTemporary(path, text, options);
  try {
    await disk.rename(temporary, path);
    if (options.sync === true) await syncDirectory(dirname(path), disk);
  } catch (error) {
    await disk.rm(temporary, { force: true }).catch(() => undefined);
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
      await SYSTEM_DISK.rm(temporary, { force: true }).catch(() => undefined);
    },
  };
}

/** Returns the path of a complete file beside `path`. */
async function writeTemporary(path: string, text: string | Uint8Array, options: WriteOptions): Promise<string> {
  const { disk = SYSTEM_DISK } = options;
  if (options.directory !== 'existing') await disk.mkdir(dirname(path), { recursive: true });
  // Renames across file systems fail, and sources ignore names with a leading dot.
  // Verbs of svcctl that only read need no cryptography, which takes long to load.
  const { randomUUID } = process.getBuiltinModule('node:crypto');
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.tmp`);
  try {
    const handle = await disk.open(temporary, 'wx', options.mode);
    try {
      await handle.writeFile(text);
      // `open` applies the umask.
      await handle.chmod(options.mode);
      if (options.sync !== undefined && options.sync !== false) await handle.sync();
    } finally {
      await handle.close();
    }
    if (options.owner !== undefined) await disk.chown(temporary, options.owner.uid, options.owner.gid).catch(() => undefined);
    return temporary;
  } catch (error) {
    await disk.rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Makes renames in a directory, or a file's content, survive a power failure; false if the disk does not take it. */
export async function syncDirectory(path: string, disk: Disk = SYSTEM_DISK): Promise<boolean> {
  const handle = await disk.open(path, OPEN_FLAGS).catch(() => undefined);
  const error = await handle?.sync().then(() => '', codeOf);
  await handle?.close();
  return error !== undefined && !['EIO', 'ENOSPC', 'EDQUOT'].includes(error);
}

/** Explains why a file cannot be written. For a full disk: the path, the free space and what to do. */
export function explainWriteError(path: string, error: unknown): string {
  const code = codeOf(error);
  if (code === 'EFBIG') return `"${path}" is larger than this process may write; raise "LimitFSIZE" or "ulimit -f"`;
  if (code === 'EDQUOT') return `the disk quota for "${path}" is used up; free disk space or raise the quota`;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return `${messageOf(error)}; allow the service to write it`;
  const place = [path, dirname(path)].find((each) => existsSync(each));
  if (code !== 'ENOSPC' || place === undefined) return messageOf(error);
  const { bavail, bsize, files, ffree } = statfsSync(place);
  if (files > 0 && ffree === 0) return `the disk of "${path}" has no free inodes; remove files`;
  return `the disk of "${path}" is full (${formatSize(bavail * bsize)} free); free disk space`;
}

/** Logs that files cannot be written, and that they can be again, each once: a full disk stays full. */
export function createWriteLog(log: SourceLog) {
  let failing = false;
  return {
    failed(what: string, path: string, error: unknown): void {
      if (!failing)
        log.warn({ file: path }, `Writing ${what} failed: ${explainWriteError(path, error)}; it is tried again until it succeeds`);
      failing = true;
    },
    /** Call after a write, and not after a removal, which succeeds on a full disk. */
    succeeded(path: string): void {
      if (failing) log.info({ file: path }, `"${path}" can be written again`);
      failing = false;
    },
  };
}

/** Whether the promise fulfills, for calls whose error does not matter. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/** Writes a value as indented JSON, in the same way. Creates the directory, but not its parents. */
export async function writeJsonAtomically(
  path: string,
  value: unknown,
  mode: number,
  options: Pick<WriteOptions, 'sync' | 'disk'> = {},
): Promise<void> {
  await makeSubdirectory(dirname(path), undefined, options.disk);
  await writeFileAtomically(path, `${JSON.stringify(value, undefined, 2)}\n`, { mode, directory: 'existing', ...options });
}

/** Stores what stays in force if `what` becomes invalid. Undefined removes it. Logs a failure. */
export async function storeLastGood(file: string | undefined, value: unknown, what: string, log: SourceLog): Promise<void> {
  if (file === undefined) return;
  const stored = value === undefined ? SYSTEM_DISK.rm(file, { force: true }) : writeJsonAtomically(file, value, 0o600, { sync: true });
  await stored.catch((error: unknown) => log.warn({}, `Storing the last good ${what} failed: ${explainWriteError(file, error)}`));
}

/**
 * Creates a directory unless it exists. Throws `ENOENT` without its parent: a state directory that was moved must not
 * be created again, empty.
 */
export async function makeSubdirectory(directory: string, mode?: number, disk: Disk = SYSTEM_DISK): Promise<void> {
  await disk.mkdir(directory, mode).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

/** Lists a directory; empty if it does not exist. Throws the system's error otherwise. */
export const listDirectory = async (directory: string, disk: Disk = SYSTEM_DISK): Promise<readonly string[]> =>
  (await ifThere(disk.readdir(directory))) ?? [];

/** Undefined if the file or process does not exist. Throws the system's error otherwise. */
export async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  return await reading.catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
}
