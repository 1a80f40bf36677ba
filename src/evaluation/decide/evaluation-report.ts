/** What an evaluation found. */

/** An expectation that an answer did not meet. */
export interface Miss {
  /** Position of the case, from 1. */
  readonly case: number;
  readonly required: boolean;
  /** The question, what was expected and what was answered; each at most 300 characters. */
  readonly question: string;
  readonly expectation: string;
  readonly answer: string;
}

export interface EvaluationReport {
  readonly cases: number;
  readonly passed: number;
  /** All misses of required cases and the first others; at most ten. */
  readonly misses: readonly Miss[];
  /** Milliseconds; undefined where no answer was streamed. */
  readonly firstTokenP95: number | undefined;
  /** Output tokens a second over all answers, with the time to the first one; undefined where no answer has any. */
  readonly tokensPerSecond: number | undefined;
  /** Milliseconds of all requests. */
  readonly totalMs?: number;
}

/** What is known of one case. */
export interface CaseResult {
  /** Undefined if the case passed. */
  readonly miss?: Miss | undefined;
  /** Milliseconds from the request to the end of its answer. */
  readonly ms: number;
  /** Undefined if the answer was not streamed. */
  readonly firstTokenMs?: number | undefined;
  /** Undefined if the server did not count them. */
  readonly outputTokens?: number | undefined;
}

const MOST_MISSES = 10;

/** Pure. */
export function sumUp(results: readonly CaseResult[]): EvaluationReport {
  const misses = results.flatMap(({ miss }) => (miss === undefined ? [] : [miss]));
  const shown = [...misses.filter(({ required }) => required), ...misses.filter(({ required }) => !required)].slice(0, MOST_MISSES);
  const counted = results.filter(({ outputTokens = 0 }) => outputTokens > 0);
  const countedMs = sum(counted.map(({ ms }) => ms));
  return {
    cases: results.length,
    passed: results.length - misses.length,
    misses: shown.toSorted((one, other) => one.case - other.case),
    firstTokenP95: percentile95(results.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    tokensPerSecond: countedMs === 0 ? undefined : (sum(counted.map(({ outputTokens = 0 }) => outputTokens)) / countedMs) * 1000,
    totalMs: sum(results.map(({ ms }) => ms)),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The smallest value that is not below 95 of 100. */
function percentile95(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[Math.ceil(values.length * 0.95) - 1];
}
