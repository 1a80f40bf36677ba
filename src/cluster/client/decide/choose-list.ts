/** Chooses one of an API server's three ways to read all objects of a type, and the next one after a failure. Pure. */
import type { Reason } from '../../../schema/status/reasons.ts';

/**
 * - `streamed`: a watch that begins with all objects (`sendInitialEvents`), served from the server's cache, object by
 *   object. `from` undefined: the newest state; otherwise any state that is not older than this version.
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

/** A copy with a version never goes back in time. The first list may have any age, unless `newest` is set. */
export function chooseList({ version, newest, streams }: ListNeeds): ListWay {
  if (streams) return { kind: 'streamed', from: newest || version === '' ? undefined : version };
  return newest ? { kind: 'newest' } : { kind: 'cached', notOlderThan: version === '' ? '0' : version };
}

/**
 * A list may succeed: the server cannot stream (`Invalid`), or cannot at present because its etcd is older than 3.4.31 or
 * 3.5.13 (`ApiFailed`), or the right to watch is missing; the refusal of the list then names the right that is missing first.
 */
const ANSWERED: ReadonlySet<Reason> = new Set<Reason>(['Invalid', 'ApiFailed', 'Forbidden']);

/** Whether the response contains everything that was written before the request. */
export const isNewest = (way: ListWay): boolean => way.kind === 'newest' || (way.kind === 'streamed' && way.from === undefined);

/** The version that the response must not be older than, if there is one. */
export const oldestOf = (way: ListWay): string | undefined =>
  way.kind === 'newest' ? undefined : way.kind === 'cached' ? way.notOlderThan : way.from;

/** Servers that cannot stream refuse the parameters; before 1.27 they do not know them. */
export const cannotStream = (way: ListWay, reason: Reason): boolean => way.kind === 'streamed' && reason === 'Invalid';

/** The needs after a failure if another way may succeed at once; undefined if it concerns them all. */
export function afterFailedList(way: ListWay, needs: ListNeeds, reason: Reason): ListNeeds | undefined {
  if (way.kind === 'newest') return undefined;
  // The version is gone, or the cache does not have it yet. After a restored backup it never will.
  if (reason === 'Expired') return needs.newest ? { ...needs, streams: false } : { ...needs, newest: true };
  return way.kind === 'streamed' && ANSWERED.has(reason) ? { ...needs, streams: false } : undefined;
}
