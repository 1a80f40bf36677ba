/** Usage as bars over time, one for each hour or day, also where there was none, and what happened meanwhile. Pure. */
import type { TimelineEntry, UsageReport } from '../types.ts';

export type Measure = 'requests' | 'errors' | 'output_tokens' | 'input_tokens' | 'busy_seconds';

export interface Bar {
  /** Its beginning, in Unix milliseconds. */
  readonly at: number;
  readonly value: number;
}

/** What may explain a bar: events of slots during it. */
export interface BarMark {
  readonly kind: 'failure' | 'change';
  readonly index: number;
  /** The oldest first. */
  readonly events: readonly TimelineEntry[];
}

const HOUR_MS = 3_600_000;
const msOf = (step: 'hour' | 'day'): number => (step === 'hour' ? HOUR_MS : 24 * HOUR_MS);
const MARKED: Readonly<Partial<Record<TimelineEntry['kind'], BarMark['kind']>>> = { failure: 'failure', swap: 'change', spec: 'change' };

/** Up to two days by the hour, which the service keeps in UTC; longer ranges by the day. */
export const stepOf = (hours: number): 'hour' | 'day' => (hours <= 48 ? 'hour' : 'day');

/** `usage`: grouped by `step`. The oldest bar first. */
export function usageBars({ since, until, usage }: Pick<UsageReport, 'since' | 'until' | 'usage'>, step: 'hour' | 'day', measure: Measure) {
  const stepMs = msOf(step);
  const first = Math.floor(Date.parse(since) / stepMs);
  const count = Math.max(1, Math.ceil(Date.parse(until) / stepMs) - first);
  const values = new Map<number, number>();
  for (const row of usage) {
    const at = Math.floor(Date.parse(row.time ?? '') / stepMs);
    values.set(at, (values.get(at) ?? 0) + row[measure]);
  }
  return Array.from({ length: count }, (_, index): Bar => ({ at: (first + index) * stepMs, value: values.get(first + index) ?? 0 }));
}

/** Swaps, new revisions and failures during each bar. `entries`: the newest first. */
export function barMarks(entries: readonly TimelineEntry[], bars: readonly Bar[], step: 'hour' | 'day'): readonly BarMark[] {
  const first = bars[0]?.at ?? 0;
  const marks = new Map<string, { kind: BarMark['kind']; index: number; events: TimelineEntry[] }>();
  for (const entry of entries.toReversed()) {
    const kind = MARKED[entry.kind];
    const index = Math.floor((Date.parse(entry.at ?? '') - first) / msOf(step));
    if (kind === undefined || !(index >= 0 && index < bars.length)) continue;
    const mark = marks.get(`${kind} ${index}`) ?? { kind, index, events: [] };
    mark.events.push(entry);
    marks.set(`${kind} ${index}`, mark);
  }
  return [...marks.values()];
}
