/** Reads the slot files of a directory after the quiet period since the last write. */
import { join } from 'node:path';
import { quietRestMs } from '../../files/watch-directory.ts';
import { unreadableText, type TextFile, type TextFileMemory } from '../../files/read-text-file.ts';
import { SYSTEM_DISK, type Disk } from '../../files/regular-file.ts';
import { createClock, pause } from '../../platform/clock.ts';
import type { Clock } from '../../reconciler/ports.ts';

/** Concurrent reads. */
const AT_ONCE = 32;
/** A file that keeps changing is read as it is after this time. */
const LONGEST_WAIT_MS = 2000;

/** Keys are file names, e.g. `img.toml`. */
export type SlotFiles = ReadonlyMap<string, TextFile>;

export interface ReadSlotFiles {
  readonly quietPeriodMs: number;
  readonly expected: readonly string[];
  readonly memory: TextFileMemory;
  readonly disk?: Disk | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Returns every slot file, reading only those that may have changed. Waits until no file was written within the quiet
 * period, so that a half-written file is not taken for an edit. Reads again before one of `expected` counts as missing,
 * since some editors remove a file while they save. Throws if the directory cannot be listed or the signal aborts.
 */
export async function readSlotFiles(directory: string, { expected, ...reading }: ReadSlotFiles, signal: AbortSignal): Promise<SlotFiles> {
  const first = await readWhenQuiet(directory, reading, signal);
  if (expected.every((file) => first.has(file))) return first;
  await pause(reading.clock ?? createClock(), reading.quietPeriodMs, signal);
  return await readWhenQuiet(directory, reading, signal);
}

/** Names with a leading dot are temporary files; `.toml~`, `.toml.bak` and `.swp` do not end in `.toml`. */
export const isSlotFileName = (file: string): boolean => file.endsWith('.toml') && !file.startsWith('.');

/** Found under another name than the listed one. Only the name is reported. */
const MISNAMED = unreadableText('The file name is not valid UTF-8; rename it');

type Reading = Omit<ReadSlotFiles, 'expected'>;

async function readWhenQuiet(directory: string, reading: Reading, signal: AbortSignal): Promise<SlotFiles> {
  const { clock = createClock() } = reading;
  const deadline = clock.now() + LONGEST_WAIT_MS;
  for (;;) {
    signal.throwIfAborted();
    const { files, restMs } = await readOnce(directory, { ...reading, clock }, signal);
    if (restMs <= 0 || clock.now() >= deadline) return files;
    await pause(clock, restMs, signal);
  }
}

/** `restMs`: rest of the quiet period. */
async function readOnce(
  directory: string,
  { quietPeriodMs, memory, disk = SYSTEM_DISK, clock }: Reading & { readonly clock: Clock },
  signal: AbortSignal,
): Promise<{ readonly files: SlotFiles; readonly restMs: number }> {
  const names = (await disk.readdir(directory)).filter(isSlotFileName).toSorted();
  const files = new Map<string, TextFile>();
  let restMs = 0;
  for (let from = 0; from < names.length; from += AT_ONCE) {
    signal.throwIfAborted();
    const some = names.slice(from, from + AT_ONCE);
    const reads = await Promise.all(some.map(async (name) => ({ name, read: await memory.read(join(directory, name)) })));
    for (const { name, read } of reads) {
      if (read === undefined && name.includes('\u{FFFD}')) files.set(name, MISNAMED);
      if (read === undefined) continue;
      files.set(name, read.file);
      restMs = Math.max(restMs, read.changedMeanwhile ? quietPeriodMs : quietRestMs(read.writtenAt, clock.wallNow(), quietPeriodMs));
    }
  }
  memory.keepOnly(new Set(names.map((name) => join(directory, name))));
  return { files, restMs: Math.ceil(restMs) };
}
