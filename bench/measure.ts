/** The result rows of measurements, and how they are printed. Ratios compare values of one run on one machine. */
import type { ResultGrid, ResultTable } from './decide/result.ts';

export interface Row {
  readonly what: string;
  /** The measured value with its unit, or why it could not be measured. */
  readonly figure: string;
  /** The goal as text: `≥ 0.65 ×`. */
  readonly goal: string;
  /** Undefined if it could not be measured here. */
  readonly met: boolean | undefined;
  /** Undefined if it could not be measured, or if it must not be judged. */
  readonly value?: number;
  readonly unit?: string;
  readonly better?: 'higher' | 'lower';
}

/** What a measurement returns: its goals, and what it measured of each of those it compares. */
export interface Outcome {
  readonly rows: readonly Row[];
  readonly tables: readonly ResultTable[];
  readonly grids?: readonly ResultGrid[];
}

/** How long the measurement of the gateway lasts. Others have their own numbers. */
export interface Pace {
  /** How often everything is started anew. */
  readonly starts: number;
  /** How often each proxy is measured in each start, after one run to warm up. */
  readonly rounds: number;
  /** Of one run. */
  readonly seconds: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value below which this share of the values is. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

interface Limit {
  readonly limit: number;
  readonly unit: string;
  /** Decimals of the printed value. Default: 2. */
  readonly digits?: number;
  /** Why the value must not be judged. Default: it is. */
  readonly doubt?: string | undefined;
}

/** A `value` that is a text says why it could not be measured. */
export function atMost(what: string, value: number | string, limit: Limit): Row {
  return rowOf(what, value, limit, 'lower');
}

export function atLeast(what: string, value: number | string, limit: Limit): Row {
  return rowOf(what, value, limit, 'higher');
}

/** A figure without a goal. */
export function note(what: string, figure: string): Row {
  return { what, figure, goal: '-', met: undefined };
}

function rowOf(what: string, value: number | string, { limit, unit, digits = 2, doubt }: Limit, better: 'higher' | 'lower'): Row {
  const goal = `${better === 'lower' ? '≤' : '≥'} ${limit} ${unit}`;
  if (typeof value === 'string') return { what, figure: value, goal, met: undefined };
  const figure = Number.isFinite(value) ? `${value.toFixed(digits)} ${unit}` : 'no value';
  if (doubt !== undefined || !Number.isFinite(value))
    return { what, figure: `${figure} (${doubt ?? 'nothing was measured'})`, goal, met: undefined };
  return { what, figure, goal, met: better === 'lower' ? value <= limit : value >= limit, value, unit, better };
}

export function rowLine(row: Row): string {
  const verdict = row.met !== undefined ? (row.met ? 'met' : 'MISSED') : row.goal === '-' ? '' : 'not judged';
  return `${row.what.padEnd(70)} ${row.figure.padStart(16)}   goal ${row.goal.padEnd(12)} ${verdict}`;
}
