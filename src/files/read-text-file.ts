/** Reads a text file that people edit: limited in size, without blocking on pipes, and with a message that says what is wrong with it. */
import { isUtf8 } from 'node:buffer';
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, type FileHandle } from 'node:fs/promises';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { invalidUtf8Position } from './decide/utf8-position.ts';

/** Such files have some kilobytes; a larger one is something else. */
const MAX_BYTES = 1024 * 1024;

export type TextFile =
  | { readonly kind: 'text'; readonly text: string }
  /** The file exists; `message` is why it cannot be read. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number };

export interface ReadFile {
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

export function isSameStamp(left: FileStamp, right: FileStamp): boolean {
  return (
    left.ino === right.ino &&
    left.mtimeNs === right.mtimeNs &&
    left.ctimeNs === right.ctimeNs &&
    left.size === right.size &&
    left.dev === right.dev
  );
}

/** Unix milliseconds. */
export function msOf(ns: bigint): number {
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
