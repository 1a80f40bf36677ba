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

/** Takes the place of what a reader may not see. */
export const HIDDEN = '(hidden)';

/** Quotes output of a program in a message, so that `hideHostText` finds it again. */
export const quoteOutput = (what: 'last log line' | 'output', text: string): string => `${what}: "${text.trim().replaceAll('"', "'")}"`;

const QUOTED_OUTPUT = /\b(last log line|output): "[^"]*"/g;
/**
 * An absolute path, in quotes or up to the next separator. Routes of the service, URLs and references are none, nor
 * is what is below `/dev`, `/proc` and `/sys`, where all machines are alike. `/dev/shm` has files of users.
 */
const HOST_PATH =
  /(?<![\w./\]#~-])(?!\/(?:\/|(?:api|v1|v2|rerank|chat|dev(?!\/shm\/)|proc|sys)(?![\w.-])))(?:(?<=")\/[^"\n]+|\/[^\s"'`()[\]<>,;:]+)/g;

/** Hides quoted output and paths of the host, but says that they were there. Pure. */
export const hideHostText = (message: string): string => message.replace(QUOTED_OUTPUT, `$1: "${HIDDEN}"`).replace(HOST_PATH, HIDDEN);

/** `problem` continues a sentence about what was read, such as "The file …", and says what to do. */
export type Readable<Read> = (Read & { readonly ok: true }) | { readonly ok: false; readonly problem: string };
