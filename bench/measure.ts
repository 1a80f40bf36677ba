/** What a measurement answers, and how a row of it is printed. Ratios are of one run on one machine; the figures beside them are for the reader. */

export interface Row {
  readonly what: string;
  /** What was measured, with its unit. */
  readonly figure: string;
  /** The goal as text: `≥ 0.65 ×`. */
  readonly reach: string;
  /** Undefined: could not be measured here, and `figure` says why. */
  readonly met: boolean | undefined;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function atMost(what: string, value: number, limit: number, unit: string, digits = 1): Row {
  return { what, figure: `${value.toFixed(digits)} ${unit}`, reach: `≤ ${limit} ${unit}`, met: value <= limit };
}

export function atLeast(what: string, value: number, limit: number, unit: string, digits = 2): Row {
  return { what, figure: `${value.toFixed(digits)} ${unit}`, reach: `≥ ${limit} ${unit}`, met: value >= limit };
}

export function unmeasured(what: string, reach: string, why: string): Row {
  return { what, figure: why, reach, met: undefined };
}

export function rowLine(row: Row): string {
  const verdict = row.met === undefined ? 'not measured' : row.met ? 'met' : 'MISSED';
  return `${row.what.padEnd(62)} ${row.figure.padStart(16)}   reach ${row.reach.padEnd(12)} ${verdict}`;
}
