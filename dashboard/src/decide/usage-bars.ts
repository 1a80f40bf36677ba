/** Usage as bars over time, one for each hour or day, also where there was none. Pure. */
import type { UsageReport } from '../types.ts';

export type Measure = 'requests' | 'errors' | 'output_tokens' | 'input_tokens' | 'busy_seconds';

export interface Bar {
  /** Its beginning, in Unix milliseconds. */
  readonly at: number;
  readonly value: number;
}

const HOUR_MS = 3_600_000;

/** Up to two days by the hour, which the service keeps in UTC; longer ranges by the day. */
export const stepOf = (hours: number): 'hour' | 'day' => (hours <= 48 ? 'hour' : 'day');

/** `usage`: grouped by `step`. The oldest bar first. */
export function usageBars({ since, until, usage }: Pick<UsageReport, 'since' | 'until' | 'usage'>, step: 'hour' | 'day', measure: Measure) {
  const stepMs = step === 'hour' ? HOUR_MS : 24 * HOUR_MS;
  const first = Math.floor(Date.parse(since) / stepMs);
  const count = Math.max(1, Math.ceil(Date.parse(until) / stepMs) - first);
  const values = new Map<number, number>();
  for (const row of usage) {
    const at = Math.floor(Date.parse(row.time ?? '') / stepMs);
    values.set(at, (values.get(at) ?? 0) + row[measure]);
  }
  return Array.from({ length: count }, (_, index): Bar => ({ at: (first + index) * stepMs, value: values.get(first + index) ?? 0 }));
}
