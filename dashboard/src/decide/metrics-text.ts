/** What the cards show of the metrics: the text format of Prometheus, of which two histograms are read. Pure. */

/** Totals since the service started. */
export interface SlotTotals {
  readonly firstTokenSeconds: number;
  readonly firstTokens: number;
  readonly outputTokens: number;
}

export interface SlotRates {
  /** Undefined where no request was answered in the time. */
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

/** What happened between two readings. A counter that went back was started again, so all of it is new. */
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
