/** The timeline of each slot, in `<state>/timelines/<slot>.jsonl` and, older, `<slot>.jsonl.1`. */
import { appendFile, mkdir, open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { SlotName } from '../spec/names.ts';
import type { TimelineEntry } from '../spec/slot-status.ts';
import { formatTimeline, parseTimeline } from './decide/timeline-lines.ts';
import { codeOf } from './source-log.ts';

/** Some ten thousand entries: months of a slot that is well, an hour of one that crashes without end. One older file is kept. */
export const TIMELINE_BYTES = 1024 * 1024;

/** Throws the system's error. */
export async function appendTimeline(directory: string, slot: SlotName, entries: readonly TimelineEntry[]): Promise<void> {
  const path = join(directory, `${slot}.jsonl`);
  await mkdir(directory, { recursive: true });
  const { size, open: unfinished } = await endOf(path);
  // A crash may have left half a line; the next one must not continue it.
  const text = `${unfinished ? '\n' : ''}${formatTimeline(entries)}`;
  if (size > 0 && size + Buffer.byteLength(text) > TIMELINE_BYTES) await rename(path, `${path}.1`);
  await appendFile(path, text, { mode: 0o640 });
}

/** Oldest first. */
export async function readTimeline(directory: string, slot: SlotName): Promise<readonly TimelineEntry[]> {
  const path = join(directory, `${slot}.jsonl`);
  const texts = await Promise.all([`${path}.1`, path].map(readIfThere));
  return texts.flatMap(parseTimeline);
}

/** Every slot that ever had a timeline here, whether it still exists or not. */
export async function listTimelines(directory: string): Promise<readonly SlotName[]> {
  const files = await readdir(directory).catch((): string[] => []);
  const names = new Set(files.map((file) => /^(.*)\.jsonl(?:\.1)?$/.exec(file)?.[1]));
  return [...names].flatMap((text) => {
    const name = SlotName.safeParse(text);
    return name.success ? [name.data] : [];
  });
}

async function readIfThere(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}

async function endOf(path: string): Promise<{ readonly size: number; readonly open: boolean }> {
  try {
    const handle = await open(path, 'r');
    try {
      const { size } = await handle.stat();
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
      return { size, open: bytesRead === 1 && buffer[0] !== 0x0a };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { size: 0, open: false };
    throw error;
  }
}
