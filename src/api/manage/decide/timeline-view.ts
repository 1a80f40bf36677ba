/** A timeline entry as JSON of the API. */
import type { z } from 'zod';
import type { TimelineEntry } from '../../../schema/status/slot-status.ts';
import type { TimelineEntry as TimelineEntryBody } from '../../../schema/status/answers.ts';
import { isoTime } from './iso-time.ts';

/** Pure. */
export function viewTimelineEntry({ seq, at, slot, kind, message, cause, from, to }: TimelineEntry): z.output<typeof TimelineEntryBody> {
  return { seq, at: isoTime(at), slot, kind, message, cause: cause ?? null, from: from ?? null, to: to ?? null };
}
