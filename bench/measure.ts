/** The result rows of measurements, and how they are printed. Ratios compare values of one run on one machine. */

export interface Row {
  readonly what: string;
  /** The measured value with its unit, or why it could not be measured. */
  readonly figure: string;
  /** The goal as text: `≥ 0.65 ×`. */
  readonly goal: string;
  /** Undefined if it could not be measured here. */
  readonly met: boolean | undefined;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

interface Limit {
  readonly limit: number;
  readonly unit: string;
  /** Decimals of the printed value. Default: 2. */
  readonly digits?: number;
}

/** A `value` that is a text says why it could not be measured. */
export function atMost(what: string, value: number | string, limit: Limit): Row {
  return rowOf(what, value, limit, '≤');
}

export function atLeast(what: string, value: number | string, limit: Limit): Row {
  return rowOf(what, value, limit, '≥');
}

function rowOf(what: string, value: number | string, { limit, unit, digits = 2 }: Limit, relation: '≤' | '≥'): Row {
  const goal = `${relation} ${limit} ${unit}`;
  if (typeof value === 'string') return { what, figure: value, goal, met: undefined };
  return { what, figure: `${value.toFixed(digits)} ${unit}`, goal, met: relation === '≤' ? value <= limit : value >= limit };
}

export function rowLine(row: Row): string {
  const verdict = row.met === undefined ? 'not measured' : row.met ? 'met' : 'MISSED';
  return `${row.what.padEnd(62)} ${row.figure.padStart(16)}   goal ${row.goal.padEnd(12)} ${verdict}`;
}
