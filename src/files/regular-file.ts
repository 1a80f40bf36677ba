/**
 * Opens files that users put in place. Only regular files of limited size are read: a named pipe blocks its reader,
 * a device may never end, and opening one may have effects.
 */
import { isUtf8 } from 'node:buffer';
import { constants, type BigIntStats, type Stats } from 'node:fs';
import { chown, lstat, mkdir, open, readdir, readFile, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { isAbsent } from '../platform/error-text.ts';

/** The calls of adapters. Tests inject a disk that fails, and that loses and tears what was not synced. */
export const SYSTEM_DISK = { chown, lstat, mkdir, open, readdir, readFile, rename, rm, stat };
export type Disk = typeof SYSTEM_DISK;

/** Text files have some kilobytes. */
export const TEXT_BYTES = 2 ** 20;
/** Files that the service or `svcctl` wrote, and manifests of thousands of slots, have some megabytes. */
export const LARGE_TEXT_BYTES = 64 * TEXT_BYTES;

/** Opening a pipe without O_NONBLOCK waits for its writer. */
export const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** The entry is no regular file, too large or not UTF-8. The message names it. */
export class UnsuitableFile extends Error {
  override readonly name = 'UnsuitableFile';
}

export interface OpenOptions {
  /** Default: `TEXT_BYTES`. */
  readonly mostBytes?: number;
  /** Whether a symbolic link is followed. Default: true. */
  readonly follow?: boolean;
  readonly disk?: Disk | undefined;
}

/** Throws `UnsuitableFile` or the system's error. */
export async function openRegularFile(path: string, options: OpenOptions = {}): Promise<FileHandle> {
  const { mostBytes = TEXT_BYTES, follow = true, disk = SYSTEM_DISK } = options;
  // Opening a pipe wakes its writer, and opening a device may have effects.
  check(path, await (follow ? disk.stat(path) : disk.lstat(path)), mostBytes);
  const handle = await disk.open(path, follow ? OPEN_FLAGS : OPEN_FLAGS | constants.O_NOFOLLOW);
  try {
    check(path, await handle.stat(), mostBytes);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Throws `UnsuitableFile` or the system's error. */
export async function readRegularBytes(path: string, options?: OpenOptions): Promise<Buffer> {
  await using handle = await openRegularFile(path, options);
  return await handle.readFile();
}

/** The same for a text. Throws `UnsuitableFile` also unless it is UTF-8. */
export async function readRegularFile(path: string, options?: OpenOptions): Promise<string> {
  return decodeText(path, await readRegularBytes(path, options));
}

/** Returns an empty text for an absent or unsuitable file; bytes may be damaged. Throws the system's error. */
export async function readIfSuitable(path: string, options?: OpenOptions): Promise<string> {
  const bytes = await readRegularBytes(path, options).catch((error: unknown) => {
    if (error instanceof UnsuitableFile || isAbsent(error)) return '';
    throw error;
  });
  return bytes.toString('utf8');
}

/** Returns why an entry is not read, and what to do; undefined for a regular file within the limit. */
export function refusalOf(facts: Stats | BigIntStats, mostBytes: number, name?: string): string | undefined {
  const kind = kindOf(facts);
  if (kind !== undefined) return `${name ?? 'This'} is a ${kind}, not a file; move it elsewhere`;
  if (facts.size <= mostBytes) return undefined;
  return `${name ?? 'This file'} has ${facts.size} bytes, more than ${mostBytes / 2 ** 20} MiB; make it smaller`;
}

function kindOf(facts: Stats | BigIntStats): string | undefined {
  // Only `lstat` shows a link. Opening it fails with ELOOP.
  if (facts.isFile() || facts.isSymbolicLink()) return undefined;
  if (facts.isDirectory()) return 'directory';
  if (facts.isFIFO()) return 'named pipe';
  return facts.isSocket() ? 'socket' : 'device';
}

function check(path: string, facts: Stats, mostBytes: number): void {
  const refusal = refusalOf(facts, mostBytes, `"${path}"`);
  if (refusal !== undefined) throw new UnsuitableFile(refusal);
}

/** Returns which encoding a text has instead of UTF-8. */
export function foreignEncoding(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  const hasMark = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  // No text begins with NUL, and no other encoding puts one beside its first letter.
  const isPair = first !== undefined && second !== undefined && (first === 0) !== (second === 0);
  if (hasMark || isPair) return 'UTF-16';
  return isUtf8(bytes) ? undefined : 'not valid UTF-8';
}

/** Throws `UnsuitableFile` unless the text is UTF-8. */
export function decodeText(path: string, bytes: Buffer): string {
  const encoding = foreignEncoding(bytes);
  if (encoding !== undefined) throw new UnsuitableFile(`"${path}" is ${encoding}; save it as UTF-8`);
  return bytes.toString('utf8');
}
