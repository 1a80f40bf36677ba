/** Reads the slot files of a directory: limited in size, without blocking on pipes, and only after the quiet period since the last write. */
import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { lstat, open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { invalidUtf8Position } from '../../files/decide/utf8-position.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

/** A slot file has a few hundred bytes; a larger one is something else. */
const MAX_BYTES = 1024 * 1024;
/** A file that is written continuously is read as it is after this time. */
const LONGEST_WAIT_MS = 2000;

export type SlotFile =
  | { readonly kind: 'text'; readonly text: string }
  /** The file exists; `message` is why it cannot be read. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number };

/** By file name (`img.toml`). */
export type SlotFiles = ReadonlyMap<string, SlotFile>;

/**
 * Reads every slot file. Waits until no file was written within the quiet period, so that a file that is only half written is not taken for an edit. Reads
 * again before it reports one of `expected` as missing, since some editors remove a file for a moment while they save. Throws the system's error if the
 * directory cannot be listed, and the signal's reason if it aborts.
 */
export async function readSlotFiles(
  directory: string,
  { quietPeriodMs, expected }: { readonly quietPeriodMs: number; readonly expected: readonly string[] },
  signal: AbortSignal,
): Promise<SlotFiles> {
  const first = await readWhenQuiet(directory, quietPeriodMs, signal);
  if (expected.every((file) => first.has(file))) return first;
  await sleep(quietPeriodMs, undefined, { signal });
  return await readWhenQuiet(directory, quietPeriodMs, signal);
}

/** Names that begin with a dot are temporary files of editors and of this service; `.toml~`, `.toml.bak` and `.swp` do not end in `.toml`. */
export function isSlotFileName(file: string): boolean {
  return file.endsWith('.toml') && !file.startsWith('.');
}

async function readWhenQuiet(directory: string, quietPeriodMs: number, signal: AbortSignal): Promise<SlotFiles> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    signal.throwIfAborted();
    const { files, restMs } = await readOnce(directory, quietPeriodMs);
    if (restMs <= 0 || performance.now() >= deadline) return files;
    await sleep(restMs, undefined, { signal });
  }
}

/** `restMs` is what is left of the quiet period. */
async function readOnce(directory: string, quietPeriodMs: number): Promise<{ readonly files: SlotFiles; readonly restMs: number }> {
  const names = (await readdir(directory)).filter(isSlotFileName).toSorted();
  const files = new Map<string, SlotFile>();
  let restMs = 0;
  for (const name of names) {
    const read = await readSlotFile(join(directory, name));
    if (read === undefined) continue;
    files.set(name, read.file);
    const ageMs = Date.now() - read.writtenAt;
    // A time in the future means that a clock is wrong, not that the file is being written.
    if (read.changedMeanwhile) restMs = Math.max(restMs, quietPeriodMs);
    else if (ageMs >= 0) restMs = Math.max(restMs, quietPeriodMs - ageMs);
  }
  return { files, restMs: Math.ceil(restMs) };
}

interface ReadFile {
  readonly file: SlotFile;
  /** Unix milliseconds of the last write; `-Infinity` if unknown. */
  readonly writtenAt: number;
  /** The file was written while it was read. */
  readonly changedMeanwhile: boolean;
}

/** Returns undefined if the file does not exist. Never throws. */
export async function readSlotFile(path: string): Promise<ReadFile | undefined> {
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
  const before = await handle.stat();
  if (before.isDirectory()) return unreadable('Move this directory elsewhere: a slot must be a file');
  if (!before.isFile()) return unreadable('Replace this with a regular file');
  if (before.size > MAX_BYTES) return unreadable(`Make this file smaller than 1 MiB; it has ${before.size} bytes`);
  const buffer = Buffer.alloc(before.size + 1);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
  const after = await handle.stat();
  const changedMeanwhile = bytesRead !== before.size || after.size !== before.size || after.mtimeMs !== before.mtimeMs;
  return { file: decode(buffer.subarray(0, bytesRead)), writtenAt: after.mtimeMs, changedMeanwhile };
}

function decode(bytes: Buffer): SlotFile {
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
