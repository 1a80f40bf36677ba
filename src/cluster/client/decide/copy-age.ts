/**
 * How old the local copy of objects in the API server may be. A watch is silent while nothing changes, so silence alone does not make a copy old: it is
 * current while its watch is proven to work, and ages from the last sign of the server otherwise. Pure: times are monotonic milliseconds.
 *
 *     list ─▶ watch opened ─ unproven ─▶ proven: something was received, or it has lasted for 10 s ─▶ ended
 *      0 ────────────────── ages ─────▶ 0 ──────────────────────────────────────────────────────── ages since the last sign
 *
 * Whether an open watch still works is for the reflector to find out: it gives up a watch whose connection is dead, or which sends no more bookmarks
 * (`read-watch.ts`). Then the copy is at once as old as it really may be.
 */

export interface CopyAge {
  /** The last time the copy was known to be current; before the first list, when the reflector started. */
  readonly confirmedAt: number;
  /** The open watch, and whether anything was received on it. */
  readonly watch?: { readonly openedAt: number; readonly received: boolean };
}

/** A server or proxy that ends each watch at once must not make a copy look current: `failuresAfter` counts such a watch as a failure too. */
const PROVEN_MS = 10_000;

/** After a list has replaced the copy, and when the reflector starts. */
export function confirmed(now: number): CopyAge {
  return { confirmedAt: now };
}

export function afterWatchOpened(age: CopyAge, now: number): CopyAge {
  return { ...age, watch: { openedAt: now, received: false } };
}

/** After an event or a bookmark. */
export function afterReceived({ watch }: CopyAge, now: number): CopyAge {
  return { confirmedAt: now, ...(watch === undefined ? {} : { watch: { ...watch, received: true } }) };
}

/** `orderly`: the server ended the watch itself, so nothing was missed until now. */
export function afterWatchEnded(age: CopyAge, orderly: boolean, now: number): CopyAge {
  return { confirmedAt: orderly && isProven(age, now) ? now : age.confirmedAt };
}

/** Returns the upper bound of the time for which the copy may have been out of date, in milliseconds. */
export function copyAgeMs(age: CopyAge, now: number): number {
  return isProven(age, now) ? 0 : Math.max(0, now - age.confirmedAt);
}

function isProven({ watch }: CopyAge, now: number): boolean {
  return watch !== undefined && (watch.received || now - watch.openedAt >= PROVEN_MS);
}
