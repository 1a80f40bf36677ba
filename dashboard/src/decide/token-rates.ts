/** Token rates of the slots, from the sums in their lines of `GET /api/status`, and their sparkline. Pure. */
import type { SlotLine } from '../types.ts';

export type SlotTotals = NonNullable<SlotLine['totals']>;

export interface SlotRates {
  /** Undefined if no request was answered in the interval. */
  readonly firstTokenSeconds: number | undefined;
  readonly tokensPerSecond: number;
}

/** A counter that decreased was reset, so its whole value counts. */
export function ratesBetween(before: SlotTotals | undefined, after: SlotTotals, seconds: number): SlotRates {
  const grown = (field: keyof SlotTotals): number => {
    const old = before?.[field] ?? 0;
    return after[field] >= old ? after[field] - old : after[field];
  };
  const answers = grown('first_tokens');
  return {
    firstTokenSeconds: answers > 0 ? grown('first_token_seconds') / answers : undefined,
    tokensPerSecond: seconds > 0 ? grown('output_tokens') / seconds : 0,
  };
}

/** Points of an SVG polyline, the newest value at the right edge. Empty without values. */
export function sparklinePoints(
  values: readonly number[],
  { width, height, most }: { readonly width: number; readonly height: number; readonly most: number },
): string {
  const shown = values.slice(-most);
  const highest = Math.max(1, ...shown);
  const step = width / Math.max(1, most - 1);
  const first = width - step * (shown.length - 1);
  return shown
    .map((value, index) => `${(first + index * step).toFixed(1)},${(height - 1 - (value / highest) * (height - 2)).toFixed(1)}`)
    .join(' ');
}
