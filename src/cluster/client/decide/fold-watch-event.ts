/** Folds one watch event into the copy of the objects. Pure. */
import { valueAt } from '../../../schema/pod/kube-fields.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { KubeObject } from '../ports.ts';
import { compareVersions, isKubeObject } from './object-fields.ts';

interface Known {
  readonly object: KubeObject | undefined;
  /** UID of an object of this name that we removed. Older events about it may still arrive. */
  readonly removedUid: string | undefined;
}

export type WatchStep =
  | { readonly kind: 'put'; readonly object: KubeObject; readonly resourceVersion: string | undefined }
  | { readonly kind: 'drop'; readonly name: string; readonly resourceVersion: string | undefined }
  | { readonly kind: 'advance' | 'bookmark'; readonly resourceVersion: string | undefined }
  | { readonly kind: 'expired' }
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
  const { code, reason, message } = isTable(status) ? status : {};
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return { kind: 'expired' };
  return { kind: 'failed', message: typeof message === 'string' ? message.slice(0, 300) : 'The watch ended with an error' };
}

function versionOf(object: unknown): string | undefined {
  const resourceVersion = valueAt(object, 'metadata', 'resourceVersion');
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}
