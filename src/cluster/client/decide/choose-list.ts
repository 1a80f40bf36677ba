/** How to read all objects of a type: which of the three ways of an API server, and which one after a failure. Pure. */
import type { Reason } from '../../../schema/status/reasons.ts';
import type { ListCause, WatchResult } from '../client-observer.ts';
import type { WatchOutcome } from '../read-watch.ts';

/**
 * - `streamed`: a watch that begins with all objects (`sendInitialEvents`). Served from the server's cache, object by object. `from` undefined: the newest
 *   state; otherwise any state that is not older than this version.
 * - `cached`: a list from the server's cache, which is not older than `notOlderThan`.
 * - `newest`: a list of the newest state, page by page. Servers before 1.31 read it from etcd.
 */
export type ListWay =
  | { readonly kind: 'streamed'; readonly from: string | undefined }
  | { readonly kind: 'cached'; readonly notOlderThan: string }
  | { readonly kind: 'newest' };

export interface ListNeeds {
  /** The resource version of the copy; empty if there is none yet. */
  readonly version: string;
  /** The newest state is needed, not one from a cache that may lag behind. */
  readonly newest: boolean;
  /** Whether the server can stream this type, as far as is known. */
  readonly streams: boolean;
}

/** A copy never goes back in time: once it has a version, a list from a cache must not be older. The first one may have any age, unless `newest` is set. */
export function chooseList({ version, newest, streams }: ListNeeds): ListWay {
  if (streams) return { kind: 'streamed', from: newest || version === '' ? undefined : version };
  if (newest) return { kind: 'newest' };
  return { kind: 'cached', notOlderThan: version === '' ? '0' : version };
}

/**
 * The server answered, and a list may succeed: it cannot stream (`Invalid`), it cannot at present because its etcd is older than 3.4.31 or 3.5.13 (`ApiFailed`), or the right to
 * watch is missing; the refusal of the list then names the right that is missing first.
 */
const ANSWERED: ReadonlySet<Reason> = new Set<Reason>(['Invalid', 'ApiFailed', 'Forbidden']);

/** Whether the answer contains everything that was written before the request. */
export const isNewest = (way: ListWay): boolean => way.kind === 'newest' || (way.kind === 'streamed' && way.from === undefined);

/** The version that the answer must not be older than, if there is one. */
export function oldestOf(way: ListWay): string | undefined {
  if (way.kind === 'newest') return undefined;
  return way.kind === 'cached' ? way.notOlderThan : way.from;
}

/** Servers that cannot stream refuse the parameters: before 1.27 they do not know them, later the refusal names the feature. */
export const cannotStream = (way: ListWay, reason: Reason): boolean => way.kind === 'streamed' && reason === 'Invalid';

/** Returns what is needed after a failed attempt, if another way may succeed at once; undefined if the failure concerns them all. */
export function afterFailedList(way: ListWay, needs: ListNeeds, reason: Reason): ListNeeds | undefined {
  if (way.kind === 'newest') return undefined;
  // The version is gone, or the cache does not have it yet. After a restored backup it never will.
  if (reason === 'Expired') return needs.newest ? { ...needs, streams: false } : { ...needs, newest: true };
  return way.kind === 'streamed' && ANSWERED.has(reason) ? { ...needs, streams: false } : undefined;
}

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

/** How a watch ended, in one word, and what that makes of the next list; for metrics. Pure. */

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
export function causeAfter(result: WatchResult): ListCause {
  return result === 'lost' || result === 'expired' ? result : 'due';
}
