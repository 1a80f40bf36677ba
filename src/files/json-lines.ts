/** Files of one JSON object in each line, which only grow. One older file is kept, with `.1` behind its name. */
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { LARGE_TEXT_BYTES, readIfSuitable, refusalOf, SYSTEM_DISK, UnsuitableFile, type Disk } from './regular-file.ts';
import { makeSubdirectory, writeFileAtomically } from './write-file.ts';

const NEWLINE = 0x0a;

interface AppendOptions {
  /** A file that would become larger is kept as the older one. */
  readonly mostBytes: number;
  readonly mode: number;
  /** Mode of the directory, if it is created. */
  readonly directoryMode?: number;
  readonly disk?: Disk;
}

/**
 * All or nothing: a retry must not repeat lines. Creates the directory, but not its parents. Throws the system's error.
 */
export async function appendJsonLines(
  path: string,
  values: readonly object[],
  { mostBytes, mode, directoryMode, disk = SYSTEM_DISK }: AppendOptions,
): Promise<void> {
  await makeSubdirectory(dirname(path), directoryMode, disk);
  const handle = await disk.open(path, 'a+', mode);
  try {
    const facts = await handle.stat();
    const refusal = refusalOf(facts, LARGE_TEXT_BYTES, `"${path}"`);
    if (refusal !== undefined) throw new UnsuitableFile(refusal);
    const { size } = facts;
    // A crash may have left an incomplete line, which the next one must not continue.
    const start = (await isAtLineStart(handle, size)) ? '' : '\n';
    const text = start + values.map((value) => `${JSON.stringify(value)}\n`).join('');
    if (size === 0 || size + Buffer.byteLength(text) <= mostBytes)
      return await handle.appendFile(text).catch(async (error: unknown) => {
        await handle.truncate(size).catch(() => undefined);
        throw error;
      });
    await disk.rename(path, `${path}.1`);
    await writeFileAtomically(path, text, { mode, directory: 'existing', disk });
  } finally {
    await handle.close();
  }
}

/** Oldest first, also those of the older file. Skips lines that a crash damaged. Throws the system's error. */
export async function readJsonLines<T>(path: string, line: z.ZodType<T>, disk?: Disk): Promise<readonly T[]> {
  const read = async (file: string): Promise<string> => await readIfSuitable(file, { mostBytes: LARGE_TEXT_BYTES, disk });
  const texts = await Promise.all([`${path}.1`, path].map(read));
  return texts.flatMap((text) => text.split('\n').flatMap((each) => line.safeParse(parseJson(each)).data ?? []));
}

async function isAtLineStart(handle: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === NEWLINE;
}
