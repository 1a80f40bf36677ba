/**
 * The timeline of each slot, as lines of JSON in `<state>/timelines/<slot>.jsonl`, with older entries in
 * `<slot>.jsonl.1`.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { SlotName } from '../schema/words/names.ts';
import { SLOT_STATES, TIMELINE_KINDS, type TimelineEntry } from '../schema/status/slot-status.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { createRingBuffer } from '../platform/ring-buffer.ts';
import { inTurns } from '../platform/semaphore.ts';
import { appendJsonLines, readJsonLines } from './json-lines.ts';
import { SYSTEM_DISK, type Disk } from './regular-file.ts';
import { ifThere, listDirectory } from './write-file.ts';
import type { Report } from '../reconciler/ports.ts';

/** Some ten thousand entries: months of a healthy slot, an hour of a crash loop. One older file is kept. */
export const TIMELINE_BYTES = 1024 * 1024;
const FILE_MODE = 0o640;

const Line = z.object({
  seq: z.int().min(1),
  at: z.number(),
  slot: SlotName,
  kind: z.enum(TIMELINE_KINDS),
  message: z.string(),
  cause: z.string().exactOptional(),
  from: z.enum(SLOT_STATES).exactOptional(),
  to: z.enum(SLOT_STATES).exactOptional(),
});

export const timelinePath = (directory: string, slot: SlotName): string => join(directory, `${slot}.jsonl`);

/** All or nothing: a retry must not repeat entries. Throws the system's error. */
export async function appendTimeline(path: string, entries: readonly TimelineEntry[], disk: Disk = SYSTEM_DISK): Promise<void> {
  await appendJsonLines(path, entries, { mostBytes: TIMELINE_BYTES, mode: FILE_MODE, disk });
}

/** Oldest first. Throws the system's error. */
async function readTimeline(directory: string, slot: SlotName, disk?: Disk): Promise<readonly TimelineEntry[]> {
  return await readJsonLines(timelinePath(directory, slot), Line, disk);
}

/** Includes deleted slots. Throws the system's error. */
async function listTimelines(directory: string, disk?: Disk): Promise<readonly SlotName[]> {
  const files = await listDirectory(directory, disk);
  const names = new Set(files.map((file) => /^(.*)\.jsonl(?:\.1)?$/.exec(file)?.[1]));
  return [...names].flatMap((name) => SlotName.safeParse(name).data ?? []);
}

/** Timelines of deleted slots to keep, for users who deleted one by mistake. */
const KEPT_OF_DELETED = 50;

/** Removes timelines of deleted slots except the latest. Never throws. */
export async function removeOldTimelines(directory: string, isPresent: (slot: SlotName) => boolean, disk = SYSTEM_DISK): Promise<void> {
  // What cannot be read now is not taken for old.
  const writtenAt = async (file: string): Promise<number> =>
    (await ifThere(disk.stat(file)).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY })))?.mtimeMs ?? 0;
  const deleted = (await listTimelines(directory, disk).catch(() => [])).filter((slot) => !isPresent(slot));
  if (deleted.length <= KEPT_OF_DELETED) return;
  const filesOf = (slot: SlotName): readonly string[] => [timelinePath(directory, slot), `${timelinePath(directory, slot)}.1`];
  const dated = deleted.map(async (slot) => ({ slot, at: Math.max(...(await Promise.all(filesOf(slot).map(writtenAt)))) }));
  const old = (await Promise.all(dated)).toSorted((a, b) => b.at - a.at).slice(KEPT_OF_DELETED);
  for (const { slot, at } of old)
    for (const file of Number.isFinite(at) ? filesOf(slot) : []) await disk.rm(file, { force: true }).catch(() => undefined);
}

/** A client that missed more entries fetches the state again. */
const CAPACITY = 2000;

/**
 * Keeps the latest timeline entries in memory for the event stream and reads whole timelines from files. Sequence
 * numbers continue after a restart. Where files cannot be read, they continue above all that may be there, and clients
 * learn that they have missed entries. Never throws.
 */
export async function createEventFeed(timelineDirectory: string, log: SourceLog, capacity = CAPACITY, disk?: Disk) {
  const listeners = new Set<(entry: TimelineEntry) => void>();
  const latest = createRingBuffer<TimelineEntry>(capacity);
  let last = 0;
  try {
    const slots = await listTimelines(timelineDirectory, disk);
    const stored = (await inTurns(slots, async (slot) => await readTimeline(timelineDirectory, slot, disk))).flat();
    for (const entry of stored.toSorted((left, right) => left.seq - right.seq)) latest.push(entry);
    last = latest.items().at(-1)?.seq ?? 0;
  } catch (error) {
    // Entries are numbered one by one, and there is less than one in each millisecond.
    last = Date.now();
    log.warn({ error: messageOf(error) }, `The timelines in "${timelineDirectory}" cannot be read; numbers of entries go on from ${last}`);
  }

  return {
    since(seq: number): { readonly entries: readonly TimelineEntry[]; readonly gap: boolean } {
      // A number that was never used comes from another installation or a lost state directory.
      const entries = latest.items();
      if (seq > last) return { entries, gap: true };
      const oldest = entries[0]?.seq ?? last + 1;
      return { entries: entries.filter((entry) => entry.seq > seq), gap: seq < oldest - 1 };
    },
    /** The highest `seq` in use; the loop continues with the next one. */
    last: () => last,
    subscribe(listener: (entry: TimelineEntry) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async timeline(slot: SlotName, limit: number): Promise<readonly TimelineEntry[]> {
      const onDisk = await readTimeline(timelineDirectory, slot, disk);
      const end = onDisk.at(-1)?.seq ?? 0;
      const notYetOnDisk = latest.items().filter((entry) => entry.slot === slot && entry.seq > end);
      return limit <= 0 ? [] : [...onDisk, ...notYetOnDisk].slice(-limit);
    },
    write({ entries }: Report): void {
      if (entries.length === 0) return;
      for (const entry of entries) latest.push(entry);
      last = Math.max(last, ...entries.map((entry) => entry.seq));
      for (const entry of entries) for (const listener of listeners) listener(entry);
    },
  };
}
