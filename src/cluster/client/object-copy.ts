/** The copy itself: objects by name, what we wrote or removed ahead of the watch, and how far the copy has come. No requests. */
import { foldWatchEvent } from './decide/fold-watch-event.ts';
import type { WatchStep } from './decide/fold-watch-event.ts';
import { compareVersions } from './decide/kube-object.ts';
import type { KubeObject } from './ports.ts';
import { isSameValue } from '../../schema/same-value.ts';

export interface ObjectCopy {
  items(): ReadonlyMap<string, KubeObject>;
  /** Where a watch goes on. */
  resourceVersion(): string;
  /** The object, if it is held in this very version. */
  held(object: KubeObject): KubeObject | undefined;
  /** Call when a list begins, and give the result to `replaceAll`: what we write meanwhile is newer than what the list shows. */
  beginList(): number;
  /** Takes a whole list over. Answers whether anything changed. */
  replaceAll(list: { readonly items: readonly KubeObject[]; readonly resourceVersion: string }, begun: number): boolean;
  /** Answers what the event was and whether anything changed. */
  fold(event: unknown): { readonly step: WatchStep; readonly changed: boolean };
  noteWritten(object: KubeObject): boolean;
  noteRemoved(name: string, uid: string): boolean;
  /** Whether a change since this was asked last is one that somebody waits for. */
  takeUrgency(): boolean;
}

/** `before` is undefined for an object that is new. */
export type IsUrgent = (before: KubeObject | undefined, after: KubeObject) => boolean;

/** An own write that no list has confirmed yet. */
interface Ahead {
  readonly since: number;
  readonly removedUid: string | undefined;
}

export function createObjectCopy(keep: (object: KubeObject) => KubeObject, isUrgent: IsUrgent = () => true): ObjectCopy {
  const objects = new Map<string, KubeObject>();
  const ahead = new Map<string, Ahead>();
  let version = '';
  let lists = 0;
  let urgent = false;

  /** Objects of the same version are the same: whoever holds one may compare by identity. A new version in which nothing that is kept differs is no news. */
  function put(object: KubeObject): boolean {
    const held = objects.get(object.metadata.name);
    if (held !== undefined && isSame(held, object)) return false;
    objects.set(object.metadata.name, object);
    const isNews = held === undefined || !saysTheSame(held, object);
    urgent ||= isNews && isUrgent(held, object);
    return isNews;
  }

  function drop(name: string): boolean {
    const held = objects.delete(name);
    urgent ||= held;
    return held;
  }

  const wasRemoved = (name: string, uid: string | undefined): boolean => uid !== undefined && ahead.get(name)?.removedUid === uid;

  return {
    items: () => objects,
    held(object) {
      const held = objects.get(object.metadata.name);
      return held !== undefined && isSame(held, object) ? held : undefined;
    },
    resourceVersion: () => version,
    beginList: () => (lists += 1),
    replaceAll({ items, resourceVersion }, begun) {
      for (const [name, { since }] of ahead) if (since < begun) ahead.delete(name);
      const listed = new Set<string>();
      let changed = false;
      for (const object of items) {
        const { name, uid } = object.metadata;
        listed.add(name);
        const isBehind = ahead.has(name) && (wasRemoved(name, uid) || isNewer(objects.get(name), object));
        if (!isBehind) changed = put(object) || changed;
      }
      for (const name of objects.keys()) {
        if (!listed.has(name) && !ahead.has(name)) changed = drop(name) || changed;
      }
      version = resourceVersion;
      return changed;
    },
    fold(event) {
      const step = foldWatchEvent(event, (name) => ({ object: objects.get(name), removedUid: ahead.get(name)?.removedUid }));
      if (step.kind === 'expired' || step.kind === 'failed') return { step, changed: false };
      version = step.resourceVersion ?? version;
      if (step.kind === 'put') return { step, changed: put(keep(step.object)) };
      if (step.kind === 'drop') return { step, changed: drop(step.name) };
      return { step, changed: false };
    },
    noteWritten(object) {
      const { name, uid } = object.metadata;
      if (wasRemoved(name, uid) || isNewer(objects.get(name), object)) return false;
      ahead.set(name, { since: lists, removedUid: undefined });
      return put(keep(object));
    },
    noteRemoved(name, uid) {
      const held = objects.get(name);
      if (held !== undefined && held.metadata.uid !== uid) return false;
      ahead.set(name, { since: lists, removedUid: uid });
      return drop(name);
    },
    takeUrgency() {
      const taken = urgent;
      urgent = false;
      return taken;
    },
  };
}

const isNewer = (held: KubeObject | undefined, other: KubeObject): boolean =>
  (compareVersions(held?.metadata.resourceVersion, other.metadata.resourceVersion) ?? -1) > 0;

function saysTheSame(left: KubeObject, right: KubeObject): boolean {
  const { resourceVersion } = right.metadata;
  return isSameValue({ ...left, metadata: { ...left.metadata, resourceVersion } }, right);
}

function isSame(left: KubeObject, right: KubeObject): boolean {
  const { uid, resourceVersion } = left.metadata;
  return resourceVersion !== undefined && resourceVersion === right.metadata.resourceVersion && uid === right.metadata.uid;
}
