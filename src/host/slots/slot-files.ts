/** Reads the slot files of a directory: limited in size, without blocking on pipes, and only after the quiet period since the last write. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { quietRestMs } from '../../files/watch-directory.ts';
import type { TextFile, TextFileMemory } from '../../files/read-text-file.ts';

/** How many files are looked at at the same time. */
const AT_ONCE = 32;
/** A file that is written continuously is read as it is after this time. */
const LONGEST_WAIT_MS = 2000;

/** By file name (`img.toml`). */
export type SlotFiles = ReadonlyMap<string, TextFile>;

export interface ReadSlotFiles {
  readonly quietPeriodMs: number;
  readonly expected: readonly string[];
  readonly memory: TextFileMemory;
}

/**
 * Returns every slot file. Reads those that may have changed. Waits until no file was written within the quiet period, so that a file that is only half written is not taken for an edit. Reads
 * again before it reports one of `expected` as missing, since some editors remove a file for a moment while they save. Throws the system's error if the
 * directory cannot be listed, and the signal's reason if it aborts.
 */
export async function readSlotFiles(directory: string, { expected, ...reading }: ReadSlotFiles, signal: AbortSignal): Promise<SlotFiles> {
  const first = await readWhenQuiet(directory, reading, signal);
  if (expected.every((file) => first.has(file))) return first;
  await sleep(reading.quietPeriodMs, undefined, { signal });
  return await readWhenQuiet(directory, reading, signal);
}

/** Names that begin with a dot are temporary files of editors and of this service; `.toml~`, `.toml.bak` and `.swp` do not end in `.toml`. */
export function isSlotFileName(file: string): boolean {
  return file.endsWith('.toml') && !file.startsWith('.');
}

type Reading = Omit<ReadSlotFiles, 'expected'>;

async function readWhenQuiet(directory: string, reading: Reading, signal: AbortSignal): Promise<SlotFiles> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    signal.throwIfAborted();
    const { files, restMs } = await readOnce(directory, reading);
    if (restMs <= 0 || performance.now() >= deadline) return files;
    await sleep(restMs, undefined, { signal });
  }
}

/** `restMs` is what is left of the quiet period. */
async function readOnce(
  directory: string,
  { quietPeriodMs, memory }: Reading,
): Promise<{ readonly files: SlotFiles; readonly restMs: number }> {
  const names = (await readdir(directory)).filter(isSlotFileName).toSorted();
  const files = new Map<string, TextFile>();
  let restMs = 0;
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = names.slice(from, from + AT_ONCE);
    const reads = await Promise.all(some.map(async (name) => ({ name, read: await memory.read(join(directory, name)) })));
    for (const { name, read } of reads) {
      if (read === undefined) continue;
      files.set(name, read.file);
      restMs = Math.max(restMs, read.changedMeanwhile ? quietPeriodMs : quietRestMs(read.writtenAt, Date.now(), quietPeriodMs));
    }
  }
  memory.keepOnly(new Set(names.map((name) => join(directory, name))));
  return { files, restMs: Math.ceil(restMs) };
}
