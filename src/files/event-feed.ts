/** Holds the latest timeline entries in memory for the event stream, and reads whole timelines from their files. Sequence numbers continue after a restart. */
import type { Report } from '../reconciler/ports.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { TimelineEntry } from '../schema/status/slot-status.ts';
import { listTimelines, readTimeline } from './timeline-files.ts';

/** A client that missed more entries than this is notified of the gap and fetches the state again. */
const CAPACITY = 2000;

/** Implements `EventFeed` of the API's ports, and the sink that feeds it. Starts with the entries of earlier runs in `<state>/timelines`. */
export async function createEventFeed(options: { readonly timelineDirectory: string; readonly capacity?: number }) {
  const { timelineDirectory, capacity = CAPACITY } = options;
  const listeners = new Set<(entry: TimelineEntry) => void>();
  const slots = await listTimelines(timelineDirectory);
  const stored = await Promise.all(slots.map(async (slot) => await readTimeline(timelineDirectory, slot)));
  let latest: readonly TimelineEntry[] = stored
    .flat()
    .toSorted((left, right) => left.seq - right.seq)
    .slice(-capacity);
  let last = latest.at(-1)?.seq ?? 0;

  return {
    since(seq: number): { readonly entries: readonly TimelineEntry[]; readonly gap: boolean } {
      // A number that was never used comes from another installation or a lost state directory.
      if (seq > last) return { entries: latest, gap: true };
      const oldest = latest[0]?.seq ?? last + 1;
      return { entries: latest.filter((entry) => entry.seq > seq), gap: seq < oldest - 1 };
    },
    /** The highest `seq` in use; the loop continues with the next one. */
    last: () => last,
    subscribe(listener: (entry: TimelineEntry) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async timeline(slot: SlotName, limit: number): Promise<readonly TimelineEntry[]> {
      const onDisk = await readTimeline(timelineDirectory, slot);
      const end = onDisk.at(-1)?.seq ?? 0;
      const notYetOnDisk = latest.filter((entry) => entry.slot === slot && entry.seq > end);
      return limit <= 0 ? [] : [...onDisk, ...notYetOnDisk].slice(-limit);
    },
    write({ entries }: Report): void {
      if (entries.length === 0) return;
      latest = [...latest, ...entries].slice(-capacity);
      last = Math.max(last, ...entries.map((entry) => entry.seq));
      for (const entry of entries) for (const listener of listeners) listener(entry);
    },
  };
}
