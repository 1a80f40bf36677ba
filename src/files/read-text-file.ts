/**
 * Reads text files that people edit: limited in size, without blocking on pipes, and with a message for each problem.
 */
import { isUtf8 } from 'node:buffer';
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, stat, type FileHandle } from 'node:fs/promises';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { positionOf, type TextPosition } from './toml/decide/parse-document.ts';

/** Text files have some kilobytes. */
const MAX_BYTES = 1024 * 1024;

export type TextFile =
  | { readonly kind: 'text'; readonly text: string }
  /** The file exists but cannot be read. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number };

interface ReadFile {
  readonly file: TextFile;
  /** Unix milliseconds of the last write; `-Infinity` if unknown. */
  readonly writtenAt: number;
  /** Written while it was read. */
  readonly changedMeanwhile: boolean;
  /** Undefined unless the file was read as a whole. */
  readonly stamp?: FileStamp;
}

/**
 * Metadata of a file. A write changes at least one field, unless it follows the last one within the resolution of file
 * times.
 */
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
      return link === undefined ? undefined : unreadable('This symbolic link points to a missing file; correct or delete it');
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
  if (before.isDirectory()) return unreadable('This is a directory, not a file; move it elsewhere');
  if (!before.isFile()) return unreadable('This is not a regular file; replace it');
  if (before.size > MAX_BYTES) return unreadable(`This file has ${before.size} bytes, more than 1 MiB; make it smaller`);
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
  return { kind: 'unreadable', message: 'This file is not valid UTF-8; save it as UTF-8', ...invalidUtf8Position(bytes) };
}

function unreadable(message: string): ReadFile {
  return { file: { kind: 'unreadable', message, line: 1, column: 1 }, writtenAt: Number.NEGATIVE_INFINITY, changedMeanwhile: false };
}

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM') return 'Permission denied; allow the service to read this file';
  if (code === 'ELOOP') return 'This symbolic link points back to itself; correct it';
  return `This file cannot be read: ${messageOf(error)}`;
}

/** Returns the position of the first invalid byte, or the end. */
function invalidUtf8Position(bytes: Uint8Array): TextPosition {
  const decode = (part: Uint8Array, stream: boolean) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(part, { stream });
  // Invalid bytes decode to the replacement character, which encodes to other bytes.
  const encoded = new TextEncoder().encode(decode(bytes, false));
  const changed = bytes.findIndex((byte, index) => byte !== encoded[index]);
  // The valid bytes may end with an incomplete character, which a stream leaves out.
  const valid = decode(changed === -1 ? bytes : bytes.subarray(0, changed), true);
  return positionOf(valid, valid.length);
}

/**
 * Reads a file again only if its metadata changed, with three safeguards: a file is trusted only if its last change was
 * some seconds old when it was read, because two writes within the resolution of file times look alike; both mtime and
 * ctime are compared, because anyone may set mtime; and every file is read again after a minute, because network file
 * systems and mapped memory report late.
 */

export interface TextFileMemory {
  /** Returns the same `file` object while the content is the same. */
  read(path: string): Promise<ReadFile | undefined>;
  /** Forgets all other files. */
  keepOnly(paths: ReadonlySet<string>): void;
}

export interface TextFileMemoryOptions {
  readonly readFile?: typeof readTextFile;
  /** Follows symbolic links. Undefined if there is no file. */
  readonly describeFile?: (path: string) => Promise<FileStamp | undefined>;
  /** Unix milliseconds, compared with file times. */
  readonly wallNow?: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

interface Remembered {
  readonly read: ReadFile;
  /** Undefined if a change could leave the stamp as it is. */
  readonly stamp: FileStamp | undefined;
  readonly readAt: number;
}

/** FAT stores times in steps of two seconds, the coarsest of all file systems. */
export const UNCERTAIN_MS = 3000;
/** A file is read again after this time, whatever its stamp. */
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

/** Whether a later write is certain to change the stamp. A time in the future means that a clock is wrong. */
function isSettled({ mtimeNs, ctimeNs }: FileStamp, wallReadAt: number): boolean {
  return wallReadAt - Math.max(msOf(mtimeNs), msOf(ctimeNs)) > UNCERTAIN_MS;
}

function isSameFile({ file: before }: ReadFile, { file }: ReadFile): boolean {
  if (before.kind === 'text') return file.kind === 'text' && before.text === file.text;
  return file.kind === 'unreadable' && before.message === file.message && before.line === file.line && before.column === file.column;
}
