/** Token rates of the slots, read from two histograms in the Prometheus text format, and their sparkline. Pure. */

/** Totals since the service started. */
export interface SlotTotals {
  readonly firstTokenSeconds: number;
  readonly firstTokens: number;
  readonly outputTokens: number;
}

export interface SlotRates {
  /** Undefined if no request was answered in the interval. */
  readonly firstTokenSeconds: number | undefined;
  readonly tokensPerSecond: number;
}

const FIELDS = {
  gen_ai_server_time_to_first_token_seconds_sum: 'firstTokenSeconds',
  gen_ai_server_time_to_first_token_seconds_count: 'firstTokens',
  gen_ai_client_token_usage_sum: 'outputTokens',
} as const;

export function readTotals(text: string): ReadonlyMap<string, SlotTotals> {
  const totals = new Map<string, SlotTotals>();
  for (const line of text.split('\n')) {
    const parsed = /^(\w+)\{(.*)\} (\S+)/.exec(line);
    const field = Object.entries(FIELDS).find(([name]) => name === parsed?.[1])?.[1];
    const labels = parsed?.[2] ?? '';
    const value = Number(parsed?.[3]);
    const slot = /(?:^|,)slot="([^"]*)"/.exec(labels)?.[1];
    if (field === undefined || slot === undefined || !Number.isFinite(value)) continue;
    if (field === 'outputTokens' && !labels.includes('gen_ai_token_type="output"')) continue;
    const before = totals.get(slot) ?? { firstTokenSeconds: 0, firstTokens: 0, outputTokens: 0 };
    totals.set(slot, { ...before, [field]: before[field] + value });
  }
  return totals;
}

/** A counter that decreased was reset, so its whole value counts. */
export function ratesBetween(before: SlotTotals | undefined, after: SlotTotals, seconds: number): SlotRates {
  const grown = (field: keyof SlotTotals): number => {
    const old = before?.[field] ?? 0;
    return after[field] >= old ? after[field] - old : after[field];
  };
  const answers = grown('firstTokens');
  return {
    firstTokenSeconds: answers > 0 ? grown('firstTokenSeconds') / answers : undefined,
    tokensPerSecond: seconds > 0 ? grown('outputTokens') / seconds : 0,
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
