/** A timeline entry as JSON of the API. */
import type { TimelineEntry } from '../../../schema/slot-status.ts';
import { isoTime } from './slot-view.ts';

/** Pure. */
export function viewTimelineEntry(entry: TimelineEntry) {
  return {
    seq: entry.seq,
    at: isoTime(entry.at),
    slot: entry.slot,
    kind: entry.kind,
    message: entry.message,
    cause: entry.cause ?? null,
    from: entry.from ?? null,
    to: entry.to ?? null,
  };
}
