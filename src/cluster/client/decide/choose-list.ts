/** How a reflector lists and watches: the way to read all objects, the delays, and the age of its copy. Pure. */
import type { Reason } from '../../../schema/status/reasons.ts';
import type { ListCause, WatchResult } from '../client-observer.ts';
import type { WatchOutcome } from '../read-watch.ts';

export interface ListWay {
  /** A watch that begins with all objects (`sendInitialEvents`), served from the server's cache, object by object. */
  readonly streamed: boolean;
  /** The cache may answer if it reaches this version. Undefined: the newest state; before 1.31 it is read from etcd. */
  readonly notOlderThan: string | undefined;
}

export interface ListNeeds {
  /** The resource version of the copy; empty if there is none yet. */
  readonly version: string;
  readonly newest: boolean;
  readonly streams: boolean;
}

/** A copy with a version never goes back in time. The first list may have any age, unless `newest` is set. */
export function chooseList({ version, newest, streams }: ListNeeds): ListWay {
  const first = streams ? undefined : '0';
  return { streamed: streams, notOlderThan: newest ? undefined : version === '' ? first : version };
}

/**
 * A list may succeed: the server cannot stream (`Invalid`), or cannot at present because its etcd is older than 3.4.31
 * or 3.5.13 (`ApiFailed`), or the right to watch is missing; the refusal of the list then names the right that is
 * missing first.
 */
const ANSWERED: ReadonlySet<Reason> = new Set<Reason>(['Invalid', 'ApiFailed', 'Forbidden']);

/** Whether the response contains everything that was written before the request. */
export const isNewest = ({ notOlderThan }: ListWay): boolean => notOlderThan === undefined;

/** Servers that cannot stream refuse the parameters; before 1.27 they do not know them. */
export const cannotStream = (way: ListWay, reason: Reason): boolean => way.streamed && reason === 'Invalid';

/** The needs after a failure if another way may succeed at once; undefined if it concerns them all. */
export function afterFailedList(way: ListWay, needs: ListNeeds, reason: Reason): ListNeeds | undefined {
  if (!way.streamed && isNewest(way)) return undefined;
  // The version is gone, or the cache does not have it yet. After a restored backup it never will.
  if (reason === 'Expired') return needs.newest ? { ...needs, streams: false } : { ...needs, newest: true };
  return way.streamed && ANSWERED.has(reason) ? { ...needs, streams: false } : undefined;
}

const FIRST_DELAY_MS = 500;
/** Half of it on average, so that we reconnect soon after a long outage of the server. */
const LONGEST_DELAY_MS = 15_000;
/** Spreads the clients after a server restart, which breaks all watches at the same moment. */
const AFTER_BREAK_MS = 1000;
/** The same for lists, which cost the server more, when it has lost the versions of all clients at the same moment. */
const AFTER_EXPIRY_MS = 3000;
/** A watch that lasted this long resets the failure count. */
const GOOD_WATCH_MS = 10_000;
const SHORTEST_WATCH_S = 300;
const LONGEST_WATCH_S = 600;

interface WatchEnd {
  readonly orderly: boolean;
  readonly livedMs: number;
}

/** Consecutive failures. A watch that did not last long counts as a failure, however it ended. */
export const failuresAfter = (failures: number, { livedMs }: WatchEnd): number => (livedMs >= GOOD_WATCH_MS ? 0 : failures + 1);

/** Full jitter, so that many clients that fail together do not retry together. */
export function retryDelayMs(failures: number, random: number): number {
  return failures <= 0 ? 0 : random * Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);
}

/** After a proper end there is no delay: the random duration of the watch has spread the clients already. */
export function rewatchDelayMs(failures: number, end: WatchEnd, random: number): number {
  if (failures > 0) return retryDelayMs(failures, random);
  return end.orderly ? 0 : random * AFTER_BREAK_MS;
}

export function expiredDelayMs(failures: number, random: number): number {
  return failures > 0 ? retryDelayMs(failures, random) : random * AFTER_EXPIRY_MS;
}

export const watchSeconds = (random: number): number => Math.round(SHORTEST_WATCH_S + random * (LONGEST_WATCH_S - SHORTEST_WATCH_S));

/** Varies by a tenth, so that several copies do not always list at the same time. */
export const relistDelayMs = (relistMs: number, random: number): number => relistMs * (0.9 + 0.2 * random);

/**
 * A watch is silent while nothing changes, so silence alone does not make a copy old: it is current while its watch is
 * proven to work, and ages from the last sign of the server otherwise. Times are monotonic milliseconds.
 *
 *     list ─▶ watch opened ─ unproven ─▶ proven: something was received, or it has lasted for 10 s ─▶ ended
 *      0 ────────────────── ages ─────▶ 0 ──────────────────────────────── ages since the last sign
 */
export interface CopyAge {
  /** The last time the copy was known to be current; before the first list, when the reflector started. */
  readonly confirmedAt: number;
  readonly watch?: { readonly openedAt: number; readonly received: boolean };
}

/** A server or proxy that ends each watch at once must not make a copy look current. */
const PROVEN_MS = 10_000;

export const confirmed = (now: number): CopyAge => ({ confirmedAt: now });

export const afterWatchOpened = (age: CopyAge, now: number): CopyAge => ({ ...age, watch: { openedAt: now, received: false } });

export function afterReceived({ watch }: CopyAge, now: number): CopyAge {
  return { confirmedAt: now, ...(watch === undefined ? {} : { watch: { ...watch, received: true } }) };
}

/** `orderly`: the server ended the watch itself, so nothing was missed until now. */
export function afterWatchEnded(age: CopyAge, orderly: boolean, now: number): CopyAge {
  return { confirmedAt: orderly && isProven(age, now) ? now : age.confirmedAt };
}

/** Upper bound of the time for which the copy may have been out of date. */
export const copyAgeMs = (age: CopyAge, now: number): number => (isProven(age, now) ? 0 : Math.max(0, now - age.confirmedAt));

const isProven = ({ watch }: CopyAge, now: number): boolean => watch !== undefined && (watch.received || now - watch.openedAt >= PROVEN_MS);

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

export const causeAfter = (result: WatchResult): ListCause => (result === 'lost' || result === 'expired' ? result : 'due');
