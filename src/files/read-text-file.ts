/** Reads a text file that people edit: limited in size, without blocking on pipes, and with a message that says what is wrong with it. */
import { isUtf8 } from 'node:buffer';
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, stat, type FileHandle } from 'node:fs/promises';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { positionOf, type TextPosition } from './toml/decide/parse-document.ts';

/** Such files have some kilobytes; a larger one is something else. */
const MAX_BYTES = 1024 * 1024;

export type TextFile =
  | { readonly kind: 'text'; readonly text: string }
  /** The file exists; `message` is why it cannot be read. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number };

interface ReadFile {
  readonly file: TextFile;
  /** Unix milliseconds of the last write; `-Infinity` if unknown. */
  readonly writtenAt: number;
  /** The file was written while it was read. */
  readonly changedMeanwhile: boolean;
  /** The identity of what was read; undefined unless it was read as a whole. */
  readonly stamp?: FileStamp;
}

/** What the system reports of a file that is not read. A write changes at least one part, unless it follows the last one within the resolution of file times. */
export type FileStamp = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** Returns undefined if the file does not exist. Never throws. */
export async function readTextFile(path: string): Promise<ReadFile | undefined> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      const link = await lstat(path).catch(() => undefined);
      return link === undefined ? undefined : unreadable('Point this symbolic link at a file that exists, or delete it');
    }
    return unreadable(reasonOf(error));
  }
  try {
    return await readHandle(handle);
  } catch (error) {
    return unreadable(reasonOf(error));
  } finally {
    await handle.close();
  }
}

async function readHandle(handle: FileHandle): Promise<ReadFile> {
  const before = await handle.stat({ bigint: true });
  if (before.isDirectory()) return unreadable('Move this directory elsewhere: this must be a file');
  if (!before.isFile()) return unreadable('Replace this with a regular file');
  if (before.size > MAX_BYTES) return unreadable(`Make this file smaller than 1 MiB; it has ${before.size} bytes`);
  const size = Number(before.size);
  const buffer = Buffer.alloc(size + 1);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
  const after = await handle.stat({ bigint: true });
  const changedMeanwhile = bytesRead !== size || !isSameStamp(before, after);
  const read = { file: decode(buffer.subarray(0, bytesRead)), writtenAt: msOf(after.mtimeNs), changedMeanwhile };
  return changedMeanwhile ? read : { ...read, stamp: after };
}

function isSameStamp(left: FileStamp, right: FileStamp): boolean {
  return (
    left.ino === right.ino &&
    left.mtimeNs === right.mtimeNs &&
    left.ctimeNs === right.ctimeNs &&
    left.size === right.size &&
    left.dev === right.dev
  );
}

/** Unix milliseconds. */
function msOf(ns: bigint): number {
  return Number(ns) / 1e6;
}

function decode(bytes: Buffer): TextFile {
  if (isUtf8(bytes)) return { kind: 'text', text: bytes.toString('utf8') };
  return { kind: 'unreadable', message: 'Save this file as UTF-8: it contains other bytes', ...invalidUtf8Position(bytes) };
}

function unreadable(message: string): ReadFile {
  return { file: { kind: 'unreadable', message, line: 1, column: 1 }, writtenAt: Number.NEGATIVE_INFINITY, changedMeanwhile: false };
}

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM') return 'Allow the service to read this file: permission was denied';
  if (code === 'ELOOP') return 'Point this symbolic link at a file: it leads back to itself';
  return `Make this file readable: ${messageOf(error)}`;
}

/** Finds the first byte that is not valid UTF-8. Pure. */

/** Returns the position of the first byte that is not part of a character, or the end if all bytes are valid. */
function invalidUtf8Position(bytes: Uint8Array): TextPosition {
  const decode = (part: Uint8Array, stream: boolean) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(part, { stream });
  // Invalid bytes are decoded as the replacement character, so they are encoded as other bytes.
  const encoded = new TextEncoder().encode(decode(bytes, false));
  const changed = bytes.findIndex((byte, index) => byte !== encoded[index]);
  // The bytes before may end with the beginning of a character that is incomplete, which a stream leaves out.
  const valid = decode(changed === -1 ? bytes : bytes.subarray(0, changed), true);
  return positionOf(valid, valid.length);
}

/**
 * Reads text files that people edit, and reads a file again only if it may have changed: a file that the system describes as it did when it was read has the same text.
 * Three things could make that wrong, and each has its rule. Two writes within the resolution of file times look alike, so a file is not relied on until its last change was
 * some seconds old when it was read. Anyone may set the time of the last write, but not that of the last change (`ctime`), so both are compared. A network file
 * system may describe a file late, and writes through mapped memory may show late, so every file is read again after a minute.
 */

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
