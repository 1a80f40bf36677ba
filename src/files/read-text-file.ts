/** Reads text files that people edit, with a message for each problem. */
import type { BigIntStats } from 'node:fs';
import { stat, type FileHandle } from 'node:fs/promises';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import { foreignEncoding, OPEN_FLAGS, refusalOf, SYSTEM_DISK, TEXT_BYTES, type Disk } from './regular-file.ts';
import { positionOf, type TextPosition } from './toml/decide/parse-document.ts';

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
export async function readTextFile(path: string, disk: Disk = SYSTEM_DISK): Promise<ReadFile | undefined> {
  let handle: FileHandle;
  try {
    const refusal = refusalOf(await disk.stat(path), TEXT_BYTES);
    if (refusal !== undefined) return unreadable(refusal);
    handle = await disk.open(path, OPEN_FLAGS);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      const link = await disk.lstat(path).catch(() => undefined);
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
  const refusal = refusalOf(before, TEXT_BYTES);
  if (refusal !== undefined) return unreadable(refusal);
  const size = Number(before.size);
  const buffer = Buffer.alloc(size + 1);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
  const after = await handle.stat({ bigint: true });
  const changedMeanwhile = bytesRead !== size || !isSameStamp(before, after);
  const read = { file: decode(buffer.subarray(0, bytesRead)), writtenAt: msOf(after.mtimeNs), changedMeanwhile };
  return changedMeanwhile ? read : { ...read, stamp: after };
}

const STAMP = ['ino', 'mtimeNs', 'ctimeNs', 'size', 'dev'] as const satisfies readonly (keyof FileStamp)[];

function isSameStamp(left: FileStamp, right: FileStamp): boolean {
  return STAMP.every((field) => left[field] === right[field]);
}

/** Unix milliseconds. */
function msOf(ns: bigint): number {
  return Number(ns) / 1e6;
}

function decode(bytes: Buffer): TextFile {
  const encoding = foreignEncoding(bytes);
  if (encoding === undefined) return { kind: 'text', text: bytes.toString('utf8') };
  return { kind: 'unreadable', message: `This file is ${encoding}; save it as UTF-8`, ...invalidUtf8Position(bytes) };
}

export const unreadableText = (message: string) => ({ kind: 'unreadable', message, line: 1, column: 1 }) as const;

function unreadable(message: string): ReadFile {
  return { file: unreadableText(message), writtenAt: Number.NEGATIVE_INFINITY, changedMeanwhile: false };
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

export type TextFileMemory = ReturnType<typeof createTextFileMemory>;

export interface TextFileMemoryOptions {
  readonly readFile?: (path: string) => ReturnType<typeof readTextFile>;
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
}: TextFileMemoryOptions = {}) {
  const remembered = new Map<string, Remembered>();
  return {
    /** Returns the same `file` object while the content is the same. */
    async read(path: string): Promise<ReadFile | undefined> {
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
      const known = last !== undefined && isSameValue(last.read.file, read.file) ? { ...read, file: last.read.file } : read;
      const stamp = read.stamp !== undefined && isSettled(read.stamp, wallReadAt) ? read.stamp : undefined;
      remembered.set(path, { read: known, stamp, readAt });
      return known;
    },
    /** Forgets all other files. */
    keepOnly(paths: ReadonlySet<string>): void {
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
