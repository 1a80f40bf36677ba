/** Usage as bars over time, one for each hour or day, also where there was none, and what happened meanwhile. Pure. */
import type { TimelineEntry, UsageReport, UsageRow } from '../types.ts';
import { formatSeconds } from './format.ts';
import { formatCount, formatEnergy } from './usage-totals.ts';

const counted = (value: number): string => formatCount(Math.round(value));

/** What a bar measures: a sum, or a sum for each unit of another one. */
const MEASURES = {
  requests: { of: (row) => row.requests, text: counted },
  errors: { of: (row) => row.errors, text: counted },
  output_tokens: { of: (row) => row.output_tokens, text: counted },
  input_tokens: { of: (row) => row.input_tokens, text: counted },
  speed: { of: (row) => row.output_tokens, per: (row) => row.busy_seconds, text: counted },
  busy_seconds: { of: (row) => row.busy_seconds, text: formatSeconds },
  queue: { of: (row) => row.queue_seconds, per: (row) => row.requests, text: formatSeconds },
  energy: { of: (row) => row.energy_wh ?? 0, text: formatEnergy },
  loads: { of: (row) => row.loads, text: counted },
} as const satisfies Readonly<
  Record<
    string,
    { readonly of: (row: UsageRow) => number; readonly per?: (row: UsageRow) => number; readonly text: (value: number) => string }
  >
>;

export type Measure = keyof typeof MEASURES;

export const measureText = (measure: Measure, value: number): string => MEASURES[measure].text(value);

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
  const { of, per }: { readonly of: (row: UsageRow) => number; readonly per?: (row: UsageRow) => number } = MEASURES[measure];
  const rowsAt = Map.groupBy(usage, ({ time }) => Math.floor(Date.parse(time ?? '') / stepMs));
  const sumAt = (at: number, read: (row: UsageRow) => number): number => (rowsAt.get(at) ?? []).reduce((sum, row) => sum + read(row), 0);
  return Array.from({ length: count }, (_, index): Bar => {
    const at = first + index;
    const units = per === undefined ? 1 : sumAt(at, per);
    return { at: at * stepMs, value: units === 0 ? 0 : sumAt(at, of) / units };
  });
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
