/**
 * The age of a local copy of objects. A watch is silent while nothing changes, so silence alone does not make a copy old:
 * it is current while its watch is proven to work, and ages from the last sign of the server otherwise. Pure; times are
 * monotonic milliseconds.
 *
 *     list ─▶ watch opened ─ unproven ─▶ proven: something was received, or it has lasted for 10 s ─▶ ended
 *      0 ────────────────── ages ─────▶ 0 ──────────────────────────────── ages since the last sign
 *
 * The reflector gives up a watch whose connection is dead, or which sends no more bookmarks (`read-watch.ts`). Then the
 * copy is at once as old as it really may be.
 */
import type { ListCause, WatchResult } from '../client-observer.ts';
import type { WatchOutcome } from '../read-watch.ts';

export interface CopyAge {
  /** The last time the copy was known to be current; before the first list, when the reflector started. */
  readonly confirmedAt: number;
  /** The open watch, and whether anything was received on it. */
  readonly watch?: { readonly openedAt: number; readonly received: boolean };
}

/** A server or proxy that ends each watch at once must not make a copy look current. */
const PROVEN_MS = 10_000;

/** After a list has replaced the copy, and when the reflector starts. */
export const confirmed = (now: number): CopyAge => ({ confirmedAt: now });

export const afterWatchOpened = (age: CopyAge, now: number): CopyAge => ({ ...age, watch: { openedAt: now, received: false } });

export function afterReceived({ watch }: CopyAge, now: number): CopyAge {
  return { confirmedAt: now, ...(watch === undefined ? {} : { watch: { ...watch, received: true } }) };
}

/** `orderly`: the server ended the watch itself, so nothing was missed until now. */
export function afterWatchEnded(age: CopyAge, orderly: boolean, now: number): CopyAge {
  return { confirmedAt: orderly && isProven(age, now) ? now : age.confirmedAt };
}

/** Returns the upper bound of the time for which the copy may have been out of date, in milliseconds. */
export const copyAgeMs = (age: CopyAge, now: number): number => (isProven(age, now) ? 0 : Math.max(0, now - age.confirmedAt));

const isProven = ({ watch }: CopyAge, now: number): boolean => watch !== undefined && (watch.received || now - watch.openedAt >= PROVEN_MS);

/** The end of a watch in one word, for metrics. */
export function watchResult(outcome: WatchOutcome): WatchResult {
  switch (outcome.kind) {
    case 'refused':
      return outcome.failure.reason === 'Expired' ? 'expired' : 'refused';
    case 'ended':
      return outcome.orderly ? 'ended' : 'broken';
    case 'lost':
    case 'relist':
      return outcome.kind;
    default:
      return outcome satisfies never;
  }
}

/** Why the next list is read if one follows a watch with this result. */
export const causeAfter = (result: WatchResult): ListCause => (result === 'lost' || result === 'expired' ? result : 'due');
