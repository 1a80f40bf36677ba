/** What one event of a watch does to a copy. Pure. */
import type { KubeObject } from '../ports.ts';
import { compareVersions, isKubeObject, isRecord } from './kube-object.ts';

/** What the copy knows of the event's object. */
export interface Known {
  readonly object: KubeObject | undefined;
  /** Uid under which it was removed by us, while the watch may still tell of its life. */
  readonly removedUid: string | undefined;
}

export type WatchStep =
  | { readonly kind: 'put'; readonly object: KubeObject; readonly resourceVersion: string | undefined }
  | { readonly kind: 'drop'; readonly name: string; readonly resourceVersion: string | undefined }
  /** Nothing changes but how far the copy has come. */
  | { readonly kind: 'advance' | 'bookmark'; readonly resourceVersion: string | undefined }
  /** A whole list must be read: the server no longer knows this version. */
  | { readonly kind: 'expired' }
  /** The watch is over. */
  | { readonly kind: 'failed'; readonly message: string };

export function foldWatchEvent(event: unknown, knownOf: (name: string) => Known): WatchStep {
  if (!isRecord(event)) return { kind: 'failed', message: 'an event of the watch is no JSON object' };
  const { type, object } = event;
  if (type === 'ERROR') return foldError(object);
  if (type === 'BOOKMARK') return { kind: 'bookmark', resourceVersion: versionOf(object) };
  if (!isKubeObject(object)) return { kind: 'failed', message: 'an event of the watch has no object' };
  const known = knownOf(object.metadata.name);
  if (type === 'DELETED') return foldDeleted(object, known);
  if (type === 'ADDED' || type === 'MODIFIED') return foldWritten(object, known);
  // Kinds of events that do not exist yet.
  return { kind: 'advance', resourceVersion: undefined };
}

function foldWritten(object: KubeObject, { object: held, removedUid }: Known): WatchStep {
  const { resourceVersion, uid } = object.metadata;
  if (removedUid !== undefined && removedUid === uid) return { kind: 'advance', resourceVersion };
  // Our own writes are in the copy before their events come.
  const order = compareVersions(resourceVersion, held?.metadata.resourceVersion);
  if (order !== undefined && order <= 0) return { kind: 'advance', resourceVersion };
  return { kind: 'put', object, resourceVersion };
}

/** The removal of an earlier object of this name does not concern the one that came after it. */
function foldDeleted(object: KubeObject, { object: held }: Known): WatchStep {
  const { name, resourceVersion, uid } = object.metadata;
  if (held === undefined) return { kind: 'advance', resourceVersion };
  const order = compareVersions(resourceVersion, held.metadata.resourceVersion);
  if (uid !== held.metadata.uid && order !== undefined && order < 0) return { kind: 'advance', resourceVersion };
  return { kind: 'drop', name, resourceVersion };
}

function foldError(status: unknown): WatchStep {
  if (!isRecord(status)) return { kind: 'failed', message: 'the watch ended with an error' };
  if (status['code'] === 410 || status['reason'] === 'Expired' || status['reason'] === 'Gone') return { kind: 'expired' };
  const { message } = status;
  return { kind: 'failed', message: typeof message === 'string' ? message.slice(0, 300) : 'the watch ended with an error' };
}

function versionOf(object: unknown): string | undefined {
  if (!isRecord(object) || !isRecord(object['metadata'])) return undefined;
  const { resourceVersion } = object['metadata'];
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}
