/** What one watch event changes in the copy of the objects. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import type { KubeObject } from '../ports.ts';
import { compareVersions, isKubeObject } from './object-fields.ts';

/** What the copy knows about the object of the event. */
interface Known {
  readonly object: KubeObject | undefined;
  /** UID of an object of this name that we removed. Older events about it may still arrive. */
  readonly removedUid: string | undefined;
}

export type WatchStep =
  | { readonly kind: 'put'; readonly object: KubeObject; readonly resourceVersion: string | undefined }
  | { readonly kind: 'drop'; readonly name: string; readonly resourceVersion: string | undefined }
  /** Only the resource version of the copy changes. */
  | { readonly kind: 'advance' | 'bookmark'; readonly resourceVersion: string | undefined }
  /** The server no longer has this version: a complete list must be read. */
  | { readonly kind: 'expired' }
  /** The watch has failed. */
  | { readonly kind: 'failed'; readonly message: string };

export function foldWatchEvent(event: unknown, knownOf: (name: string) => Known): WatchStep {
  if (!isTable(event)) return { kind: 'failed', message: 'A watch event is not a JSON object' };
  const { type, object } = event;
  if (type === 'ERROR') return foldError(object);
  if (type === 'BOOKMARK') return { kind: 'bookmark', resourceVersion: versionOf(object) };
  if (!isKubeObject(object)) return { kind: 'failed', message: 'A watch event has no object' };
  const known = knownOf(object.metadata.name);
  if (type === 'DELETED') return foldDeleted(object, known);
  if (type === 'ADDED' || type === 'MODIFIED') return foldWritten(object, known);
  // Event types that do not exist yet.
  return { kind: 'advance', resourceVersion: undefined };
}

function foldWritten(object: KubeObject, { object: held, removedUid }: Known): WatchStep {
  const { resourceVersion, uid } = object.metadata;
  if (removedUid !== undefined && removedUid === uid) return { kind: 'advance', resourceVersion };
  // Our own writes are in the copy before their events arrive.
  const order = compareVersions(resourceVersion, held?.metadata.resourceVersion);
  if (order !== undefined && order <= 0) return { kind: 'advance', resourceVersion };
  return { kind: 'put', object, resourceVersion };
}

/** The removal of an earlier object of this name does not affect its successor. */
function foldDeleted(object: KubeObject, { object: held }: Known): WatchStep {
  const { name, resourceVersion, uid } = object.metadata;
  if (held === undefined) return { kind: 'advance', resourceVersion };
  const order = compareVersions(resourceVersion, held.metadata.resourceVersion);
  if (uid !== held.metadata.uid && order !== undefined && order < 0) return { kind: 'advance', resourceVersion };
  return { kind: 'drop', name, resourceVersion };
}

function foldError(status: unknown): WatchStep {
  if (!isTable(status)) return { kind: 'failed', message: 'The watch ended with an error' };
  if (status['code'] === 410 || status['reason'] === 'Expired' || status['reason'] === 'Gone') return { kind: 'expired' };
  const { message } = status;
  return { kind: 'failed', message: typeof message === 'string' ? message.slice(0, 300) : 'The watch ended with an error' };
}

function versionOf(object: unknown): string | undefined {
  if (!isTable(object) || !isTable(object['metadata'])) return undefined;
  const { resourceVersion } = object['metadata'];
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}

/** How long to wait before the next list or watch, and how long a watch lasts. Pure: random numbers in [0, 1) are arguments. */

const FIRST_DELAY_MS = 500;
/** Half of it on average, so that we reconnect soon after a long outage of the server. */
const LONGEST_DELAY_MS = 15_000;
/** Spreads the clients after a server restart, which breaks the watches of all clients at the same moment. */
const AFTER_BREAK_MS = 1000;
/** The same for lists, which cost the server more than watches: it has lost the versions of all clients at the same moment. */
const AFTER_EXPIRY_MS = 3000;
/** A watch that lasted this long resets the failure count. */
const GOOD_WATCH_MS = 10_000;

const SHORTEST_WATCH_S = 300;
const LONGEST_WATCH_S = 600;

interface WatchEnd {
  /** The server ended the watch properly. */
  readonly orderly: boolean;
  readonly livedMs: number;
}

/** Returns the number of consecutive failures. A watch that did not last long counts as a failure, however it ended. */
export function failuresAfter(failures: number, { livedMs }: WatchEnd): number {
  return livedMs >= GOOD_WATCH_MS ? 0 : failures + 1;
}

/** Full jitter, so that many clients that fail together do not retry together. */
export function retryDelayMs(failures: number, random: number): number {
  if (failures <= 0) return 0;
  return random * Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);
}

/** Returns the delay before the next watch. After a proper end there is none: the random length of the watch has spread the clients already. */
export function rewatchDelayMs(failures: number, end: WatchEnd, random: number): number {
  if (failures > 0) return retryDelayMs(failures, random);
  return end.orderly ? 0 : random * AFTER_BREAK_MS;
}

/** Returns the delay before the list that follows when the server no longer has the version of a watch. `failures`: those in a row before this one. */
export function expiredDelayMs(failures: number, random: number): number {
  return failures > 0 ? retryDelayMs(failures, random) : random * AFTER_EXPIRY_MS;
}

export function watchSeconds(random: number): number {
  return Math.round(SHORTEST_WATCH_S + random * (LONGEST_WATCH_S - SHORTEST_WATCH_S));
}

/** Returns the delay before the next periodic list. It varies by a tenth, so that several copies do not always list at the same time. */
export function relistDelayMs(relistMs: number, random: number): number {
  return relistMs * (0.9 + 0.2 * random);
}
