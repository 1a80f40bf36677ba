/**
 * Reads text files that people edit, and reads a file again only if it may have changed: a file that the system describes as it did when it was read has the same text.
 * Three things could make that wrong, and each has its rule. Two writes within the resolution of file times look alike, so a file is not relied on until its last change was
 * some seconds old when it was read. Anyone may set the time of the last write, but not that of the last change (`ctime`), so both are compared. A network file
 * system may describe a file late, and writes through mapped memory may show late, so every file is read again after a minute.
 */
import { stat } from 'node:fs/promises';
import { isSameStamp, msOf, readTextFile, type FileStamp, type ReadFile } from './read-text-file.ts';

export interface TextFileMemory {
  /** Like `readTextFile`. Returns the same `file` as before where its content is the same. */
  read(path: string): Promise<ReadFile | undefined>;
  /** Forgets all other files. */
  keepOnly(paths: ReadonlySet<string>): void;
}

export interface TextFileMemoryOptions {
  readonly readFile?: typeof readTextFile;
  /** Follows symbolic links, as reading does; undefined if there is no file. */
  readonly describeFile?: (path: string) => Promise<FileStamp | undefined>;
  /** Unix milliseconds; what file times are compared with. */
  readonly wallNow?: () => number;
  /** Milliseconds of a clock that is never set. */
  readonly now?: () => number;
}

interface Remembered {
  readonly read: ReadFile;
  /** Undefined where the file could change without another stamp. */
  readonly stamp: FileStamp | undefined;
  readonly readAt: number;
}

/** FAT stores times in steps of two seconds, the coarsest of all file systems. */
export const UNCERTAIN_MS = 3000;
/** After this time a file is read again, whatever its stamp. */
export const LOOK_AGAIN_MS = 60_000;

export function createTextFileMemory({
  readFile = readTextFile,
  describeFile = describe,
  wallNow = Date.now,
  now = () => performance.now(),
}: TextFileMemoryOptions = {}): TextFileMemory {
  const remembered = new Map<string, Remembered>();
  return {
    async read(path) {
      const last = remembered.get(path);
      if (last?.stamp !== undefined && now() - last.readAt < LOOK_AGAIN_MS) {
        const present = await describeFile(path);
        if (present !== undefined && isSameStamp(last.stamp, present)) return last.read;
      }
      const readAt = now();
      const wallReadAt = wallNow();
      const read = await readFile(path);
      if (read === undefined) {
        remembered.delete(path);
        return undefined;
      }
      const known = last !== undefined && isSameFile(last.read, read) ? { ...read, file: last.read.file } : read;
      const stamp = read.stamp !== undefined && isSettled(read.stamp, wallReadAt) ? read.stamp : undefined;
      remembered.set(path, { read: known, stamp, readAt });
      return known;
    },
    keepOnly(paths) {
      for (const path of remembered.keys()) if (!paths.has(path)) remembered.delete(path);
    },
  };
}

async function describe(path: string): Promise<FileStamp | undefined> {
  return await stat(path, { bigint: true }).catch(() => undefined);
}

/** Whether a later write will certainly show in the file's times. A time in the future means that a clock is wrong. */
function isSettled({ mtimeNs, ctimeNs }: FileStamp, wallReadAt: number): boolean {
  return wallReadAt - Math.max(msOf(mtimeNs), msOf(ctimeNs)) > UNCERTAIN_MS;
}

function isSameFile({ file: before }: ReadFile, { file }: ReadFile): boolean {
  if (before.kind === 'text') return file.kind === 'text' && before.text === file.text;
  return file.kind === 'unreadable' && before.message === file.message && before.line === file.line && before.column === file.column;
}
