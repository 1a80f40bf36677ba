/** A timeline entry as JSON of the API. */
import type { TimelineEntry } from '../../../schema/slot-status.ts';
import { isoTime, toJson } from './to-json.ts';

/** Pure. */
export function viewTimelineEntry({ seq, at, slot, kind, message, cause, from, to }: TimelineEntry) {
  return toJson({ seq, at: isoTime(at), slot, kind, message, cause, from, to });
}
