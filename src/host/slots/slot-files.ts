/** Reads the slot files of a directory as they lie there: bounded in size, never blocking on what is no file, settled before they are believed. */
import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { lstat, open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { invalidUtf8Position } from '../../files/toml/decide/utf8-position.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

/** A slot file is a few hundred bytes; whatever is larger than this is something else. */
const LARGEST_BYTES = 1024 * 1024;
/** Somebody who writes without a pause is not waited for any longer. */
const SETTLING_MS = 2000;

export type SlotFile =
  | { readonly kind: 'text'; readonly text: string }
  /** It lies there, and this is why it cannot be read. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number };

/** By file name (`img.toml`). */
export type SlotFiles = ReadonlyMap<string, SlotFile>;

/**
 * Reads every slot file. Waits until none was written within the last `quietMs`, so that half of a file that is being written is not
 * taken for an edit; reads again before it answers that one of `expected` is gone, since editors take a file away for a moment
 * while they save. Throws the system's error when the directory cannot be listed.
 */
export async function readSlotFiles(
  directory: string,
  options: { readonly quietMs: number; readonly expected: readonly string[] },
  signal: AbortSignal,
): Promise<SlotFiles> {
  const first = await readSettled(directory, options.quietMs, signal);
  if (options.expected.every((file) => first.has(file))) return first;
  await sleep(options.quietMs, undefined, { signal });
  return await readSettled(directory, options.quietMs, signal);
}

/** Dotted names are editors' and our own temporary files; `.toml~`, `.toml.bak` and `.swp` do not end in `.toml`. */
export function isSlotFileName(file: string): boolean {
  return file.endsWith('.toml') && !file.startsWith('.');
}

async function readSettled(directory: string, quietMs: number, signal: AbortSignal): Promise<SlotFiles> {
  const deadline = performance.now() + SETTLING_MS;
  for (;;) {
    signal.throwIfAborted();
    const { files, restMs } = await readOnce(directory, quietMs);
    if (restMs <= 0 || performance.now() >= deadline) return files;
    await sleep(restMs, undefined, { signal });
  }
}

async function readOnce(directory: string, quietMs: number): Promise<{ readonly files: SlotFiles; readonly restMs: number }> {
  const names = (await readdir(directory)).filter(isSlotFileName).toSorted();
  const files = new Map<string, SlotFile>();
  let restMs = 0;
  for (const name of names) {
    const read = await readSlotFile(join(directory, name));
    if (read === undefined) continue;
    files.set(name, read.file);
    const ageMs = Date.now() - read.writtenAt;
    // A time in the future is a clock's fault, not a sign of writing.
    if (read.torn) restMs = Math.max(restMs, quietMs);
    else if (ageMs >= 0 && ageMs < quietMs) restMs = Math.max(restMs, quietMs - ageMs);
  }
  return { files, restMs: Math.ceil(restMs) };
}

interface ReadFile {
  readonly file: SlotFile;
  /** Unix milliseconds of the last write; `-Infinity` when not known. */
  readonly writtenAt: number;
  /** Written while it was read. */
  readonly torn: boolean;
}

/** Undefined: it is gone. Never throws. */
export async function readSlotFile(path: string): Promise<ReadFile | undefined> {
  let handle: FileHandle;
  try {
    // Opening a pipe would wait for its writer otherwise.
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
  const before = await handle.stat();
  if (before.isDirectory()) return unreadable('Move this directory away: slots are files');
  if (!before.isFile()) return unreadable('Replace this by a plain file');
  if (before.size > LARGEST_BYTES) return unreadable(`Make this file smaller than 1 MiB; it has ${before.size} bytes`);
  const buffer = Buffer.alloc(before.size + 1);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
  const after = await handle.stat();
  const torn = bytesRead !== before.size || after.size !== before.size || after.mtimeMs !== before.mtimeMs;
  return { file: decode(buffer.subarray(0, bytesRead)), writtenAt: after.mtimeMs, torn };
}

function decode(bytes: Buffer): SlotFile {
  if (isUtf8(bytes)) return { kind: 'text', text: bytes.toString('utf8') };
  return { kind: 'unreadable', message: 'Save this file as UTF-8: it holds bytes that are none', ...invalidUtf8Position(bytes) };
}

function unreadable(message: string): ReadFile {
  return { file: { kind: 'unreadable', message, line: 1, column: 1 }, writtenAt: Number.NEGATIVE_INFINITY, torn: false };
}

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM') return 'Let the service read this file: permission was denied';
  if (code === 'ELOOP') return 'Point this symbolic link at a file: it leads round in a circle';
  return `Make this file readable: ${messageOf(error)}`;
}
