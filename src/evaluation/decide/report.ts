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
  /** Output tokens a second over all answers; undefined where no answer has any. */
  readonly tokensPerSecond: number | undefined;
}
