/** Expected failures are values. What to do about one is decided once, where it is made. */

export type FailureKind =
  /** Try again by itself, later and later. */
  | 'retry'
  /** Nothing is wrong; come back at `until`. */
  | 'waiting'
  /** Trying again changes nothing: a person must act. */
  | 'stalled';

export interface Failure {
  readonly kind: FailureKind;
  /** CamelCase, becomes the reason of a condition: `ImagePullFailed`, `PortTaken`, `ModelMissing`. */
  readonly reason: string;
  /** Sentence case, values in quotes, no final period, and what to do about it where there is something. */
  readonly message: string;
  /** Unix milliseconds; with `waiting` only. */
  readonly until?: number;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });

export const fail = (kind: FailureKind, reason: string, message: string): Result<never> => ({
  ok: false,
  failure: { kind, reason, message },
});
