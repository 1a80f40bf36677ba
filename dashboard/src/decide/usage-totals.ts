/** Usage for display: the sum of all rows, and amounts of money. Pure. */
import type { UsageRow } from '../types.ts';

export type UsageTotals = Pick<
  UsageRow,
  | 'requests'
  | 'errors'
  | 'input_tokens'
  | 'cached_tokens'
  | 'output_tokens'
  | 'estimated_requests'
  | 'busy_seconds'
  | 'audio_seconds'
  | 'images'
  | 'energy_wh'
  | 'cost'
  | 'loads'
  | 'evictions'
>;

export function totalOf(rows: readonly UsageTotals[]): UsageTotals {
  const sum = (read: (row: UsageTotals) => number): number => rows.reduce((total, row) => total + read(row), 0);
  /** Null if nothing is known. */
  const known = (read: (row: UsageTotals) => number | null): number | null =>
    rows.some((row) => read(row) !== null) ? sum((row) => read(row) ?? 0) : null;
  const costs = Map.groupBy(
    rows.flatMap(({ cost }) => cost),
    ({ currency }) => currency,
  );
  return {
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    input_tokens: sum((row) => row.input_tokens),
    cached_tokens: sum((row) => row.cached_tokens),
    output_tokens: sum((row) => row.output_tokens),
    estimated_requests: sum((row) => row.estimated_requests),
    busy_seconds: sum((row) => row.busy_seconds),
    audio_seconds: known((row) => row.audio_seconds),
    images: known(({ images }) => images),
    energy_wh: known((row) => row.energy_wh),
    loads: sum(({ loads }) => loads),
    evictions: sum(({ evictions }) => evictions),
    cost: [...costs].map(([currency, same]) => ({ currency, amount: same.reduce((total, { amount }) => total + amount, 0) })),
  };
}

/** "12.34 EUR + 0.0015 USD": cents, or two digits of less than that. Empty without a price. */
export function formatCost(cost: UsageTotals['cost']): string {
  return cost.map(({ currency, amount }) => `${formatAmount(amount)} ${currency}`).join(' + ');
}

function formatAmount(amount: number): string {
  const digits = amount > 0 && amount < 0.01 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return amount.toLocaleString('en-GB', digits);
}

/** "~12.34 Wh": an estimate. */
export const formatEnergy = (wh: number): string => `~${wh >= 1000 ? `${formatAmount(wh / 1000)} kWh` : `${formatAmount(wh)} Wh`}`;

/** "1,234", with "~" if some of it was guessed. */
export const formatCount = (count: number, isGuessed = false): string => `${isGuessed ? '~' : ''}${count.toLocaleString('en-GB')}`;
