/** Timelines as lines of JSON: what a crash damaged is skipped, never believed. Pure. */
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';
import { SLOT_STATES, type TimelineEntry } from '../../schema/slot-status.ts';

const Line = z.object({
  seq: z.int().min(1),
  at: z.number(),
  slot: SlotName,
  kind: z.enum(['state', 'spec', 'action', 'failure', 'drift', 'condition']),
  message: z.string(),
  cause: z.string().optional(),
  from: z.enum(SLOT_STATES).optional(),
  to: z.enum(SLOT_STATES).optional(),
});

export function parseTimeline(text: string): readonly TimelineEntry[] {
  return text.split('\n').flatMap((line) => {
    const parsed = Line.safeParse(parseJson(line));
    if (!parsed.success) return [];
    const { cause, from, to, ...entry } = parsed.data;
    return [
      { ...entry, ...(cause === undefined ? {} : { cause }), ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) },
    ];
  });
}

export function formatTimeline(entries: readonly TimelineEntry[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
