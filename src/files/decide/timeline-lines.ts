/** Formats and parses timelines as lines of JSON. Lines that a crash damaged are skipped. Pure. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { SlotName } from '../../schema/names.ts';
import { SLOT_STATES, type TimelineEntry } from '../../schema/slot-status.ts';

const Line = z.object({
  seq: z.int().min(1),
  at: z.number(),
  slot: SlotName,
  kind: z.enum(['state', 'spec', 'action', 'failure', 'drift', 'condition']),
  message: z.string(),
  cause: z.string().exactOptional(),
  from: z.enum(SLOT_STATES).exactOptional(),
  to: z.enum(SLOT_STATES).exactOptional(),
});

export function parseTimeline(text: string): readonly TimelineEntry[] {
  return text.split('\n').flatMap((line) => Line.safeParse(parseJson(line)).data ?? []);
}

export function formatTimeline(entries: readonly TimelineEntry[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}
