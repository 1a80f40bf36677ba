/** Expected failures are values. What to do about one is decided once, where it is created. */
import type { Reason, StalledReason } from '../status/reasons.ts';

export type FailureKind =
  /** Try again automatically, with growing delays. */
  | 'retry'
  /** Nothing is wrong; try again at `until`. */
  | 'waiting'
  /** Permanent: a retry fails again until somebody acts. */
  | 'stalled';

/** A fact or a failure: a reason, used as a condition's reason, and one sentence. */
export interface Finding {
  readonly reason: Reason;
  /** Sentence case, values in quotes, no final period, and what to do about it where there is something to do. */
  readonly message: string;
}

export interface Failure extends Finding {
  readonly kind: FailureKind;
  /** Monotonic milliseconds; with `waiting` only. */
  readonly until?: number;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });

export const fail = <Kind extends FailureKind>(
  kind: Kind,
  reason: Kind extends 'stalled' ? StalledReason : Reason,
  message: string,
): Result<never> => ({ ok: false, failure: { kind, reason, message } });
