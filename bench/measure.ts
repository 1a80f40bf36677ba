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

export function atMost(what: string, value: number, limit: number, unit: string, digits = 1): Row {
  return { what, figure: `${value.toFixed(digits)} ${unit}`, goal: `≤ ${limit} ${unit}`, met: value <= limit };
}

export function atLeast(what: string, value: number, limit: number, unit: string, digits = 2): Row {
  return { what, figure: `${value.toFixed(digits)} ${unit}`, goal: `≥ ${limit} ${unit}`, met: value >= limit };
}

export function unmeasured(what: string, goal: string, why: string): Row {
  return { what, figure: why, goal, met: undefined };
}

export function rowLine(row: Row): string {
  const verdict = row.met === undefined ? 'not measured' : row.met ? 'met' : 'MISSED';
  return `${row.what.padEnd(62)} ${row.figure.padStart(16)}   goal ${row.goal.padEnd(12)} ${verdict}`;
}
