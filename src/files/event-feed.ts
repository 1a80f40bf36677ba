/** The latest timeline entries in memory, for the event stream, and whole timelines from their files. Numbers go on after a restart. */
import type { Report, StatusSink } from '../reconciler/ports.ts';
import type { SlotName } from '../schema/names.ts';
import type { TimelineEntry } from '../schema/slot-status.ts';
import { listTimelines, readTimeline } from './timeline-files.ts';

/** `EventFeed` of the API's ports, and the sink that feeds it. */
export interface TimelineFeed extends StatusSink {
  since(seq: number): { readonly entries: readonly TimelineEntry[]; readonly gap: boolean };
  /** Last `seq` given out; the loop goes on with the next one. */
  last(): number;
  subscribe(listener: (entry: TimelineEntry) => void): () => void;
  timeline(slot: SlotName, limit: number): Promise<readonly TimelineEntry[]>;
}

/** A client that was away for longer than this lasts is told of the gap and reads the state anew. */
const CAPACITY = 2000;

/** Reads what is left of earlier lives from `<state>/timelines`. */
export async function createEventFeed(options: { readonly timelineDirectory: string; readonly capacity?: number }): Promise<TimelineFeed> {
  const capacity = options.capacity ?? CAPACITY;
  const listeners = new Set<(entry: TimelineEntry) => void>();
  const slots = await listTimelines(options.timelineDirectory);
  const kept = await Promise.all(slots.map(async (slot) => await readTimeline(options.timelineDirectory, slot)));
  let ring: readonly TimelineEntry[] = kept.flat().toSorted(bySeq).slice(-capacity);
  let last = ring.at(-1)?.seq ?? 0;

  return {
    since(seq) {
      const entries = ring.filter((entry) => entry.seq > seq);
      // A number that was never given out comes from another life, whose entries nobody has.
      if (seq > last) return { entries: ring, gap: true };
      const oldest = ring[0]?.seq ?? last + 1;
      return { entries, gap: seq < oldest - 1 };
    },
    last: () => last,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async timeline(slot, limit) {
      const onDisk = await readTimeline(options.timelineDirectory, slot);
      const end = onDisk.at(-1)?.seq ?? 0;
      const notYet = ring.filter((entry) => entry.slot === slot && entry.seq > end);
      return limit <= 0 ? [] : [...onDisk, ...notYet].slice(-limit);
    },
    write(report: Report) {
      if (report.entries.length === 0) return;
      ring = [...ring, ...report.entries].slice(-capacity);
      last = Math.max(last, ...report.entries.map((entry) => entry.seq));
      for (const entry of report.entries) for (const listener of listeners) listener(entry);
    },
  };
}

function bySeq(left: TimelineEntry, right: TimelineEntry): number {
  return left.seq - right.seq;
}
