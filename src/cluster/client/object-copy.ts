/** The objects of a reflector by name, our unconfirmed writes, and the resource version. Sends no requests. */
import { isSameValue } from '../../schema/words/same-value.ts';
import type { Clock } from '../../reconciler/ports.ts';
import { foldWatchEvent, type WatchStep } from './decide/fold-watch-event.ts';
import { compareVersions } from './decide/object-fields.ts';
import * as decide from './decide/choose-list.ts';
import type { KubeObject, ObjectList, Transform } from './ports.ts';
import type { KubeObserver, ListCause } from './client-observer.ts';
import type { WatchOutcome } from './read-watch.ts';

/** `before` is undefined for a new object. */
export type IsUrgent = (before: KubeObject | undefined, after: KubeObject) => boolean;

interface UnconfirmedWrite {
  readonly since: number;
  readonly removedUid: string | undefined;
}

export function createObjectCopy(transform: Transform, isUrgent: IsUrgent = () => true) {
  const objects = new Map<string, KubeObject>();
  const unconfirmed = new Map<string, UnconfirmedWrite>();
  let version = '';
  let lists = 0;
  let urgent = false;

  function sameVersion({ metadata }: KubeObject): KubeObject | undefined {
    const stored = objects.get(metadata.name);
    const { uid, resourceVersion } = stored?.metadata ?? {};
    return resourceVersion !== undefined && resourceVersion === metadata.resourceVersion && uid === metadata.uid ? stored : undefined;
  }

  /** Callers compare by identity, so the stored object of the same version stays. */
  function put(object: KubeObject): boolean {
    const before = objects.get(object.metadata.name);
    if (sameVersion(object) !== undefined) return false;
    objects.set(object.metadata.name, object);
    const changed = before === undefined || !hasSameContent(before, object);
    urgent ||= changed && isUrgent(before, object);
    return changed;
  }

  function drop(name: string): boolean {
    const existed = objects.delete(name);
    urgent ||= existed;
    return existed;
  }

  const wasRemoved = (name: string, uid: string | undefined): boolean => uid !== undefined && unconfirmed.get(name)?.removedUid === uid;

  return {
    items: (): ReadonlyMap<string, KubeObject> => objects,
    sameVersion,
    resourceVersion: (): string => version,
    /** Pass the result to `replaceAll`: own writes in between are newer than the list. */
    beginList: (): number => (lists += 1),
    /** Returns whether anything changed, like `noteWritten` and `noteRemoved`. */
    replaceAll({ items, resourceVersion }: ObjectList, begun: number): boolean {
      for (const [name, { since }] of unconfirmed) if (since < begun) unconfirmed.delete(name);
      const listed = new Set<string>();
      let changed = false;
      for (const object of items) {
        const { name, uid } = object.metadata;
        listed.add(name);
        const isOutdated = unconfirmed.has(name) && (wasRemoved(name, uid) || isNewer(objects.get(name), object));
        if (!isOutdated) changed = put(object) || changed;
      }
      for (const name of objects.keys()) {
        if (!listed.has(name) && !unconfirmed.has(name)) changed = drop(name) || changed;
      }
      version = resourceVersion;
      return changed;
    },
    fold(event: unknown): { readonly step: WatchStep; readonly changed: boolean } {
      const step = foldWatchEvent(event, (name) => ({ object: objects.get(name), removedUid: unconfirmed.get(name)?.removedUid }));
      if (step.kind === 'expired' || step.kind === 'failed') return { step, changed: false };
      version = step.resourceVersion ?? version;
      if (step.kind === 'put') return { step, changed: put(transform(step.object)) };
      return { step, changed: step.kind === 'drop' && drop(step.name) };
    },
    noteWritten(object: KubeObject): boolean {
      const { name, uid } = object.metadata;
      if (wasRemoved(name, uid) || isNewer(objects.get(name), object)) return false;
      unconfirmed.set(name, { since: lists, removedUid: undefined });
      return put(transform(object));
    },
    noteRemoved(name: string, uid: string): boolean {
      const stored = objects.get(name);
      if (stored !== undefined && stored.metadata.uid !== uid) return false;
      unconfirmed.set(name, { since: lists, removedUid: uid });
      return drop(name);
    },
    consumeUrgency(): boolean {
      const wasUrgent = urgent;
      urgent = false;
      return wasUrgent;
    },
  };
}

const isNewer = (stored: KubeObject | undefined, other: KubeObject): boolean =>
  (compareVersions(stored?.metadata.resourceVersion, other.metadata.resourceVersion) ?? -1) > 0;

function hasSameContent(left: KubeObject, right: KubeObject): boolean {
  const { resourceVersion } = right.metadata;
  return isSameValue({ ...left, metadata: { ...left.metadata, resourceVersion } }, right);
}

export type CopyObserver = Pick<KubeObserver, 'copyStarted' | 'copyListed' | 'copyWatchEnded'>;

export function createCopyRecord(resource: string, clock: Clock, observer: CopyObserver) {
  let age: decide.CopyAge = decide.confirmed(clock.now());
  let cause: ListCause = 'start';
  return {
    started(signal: AbortSignal): void {
      age = decide.confirmed(clock.now());
      observer.copyStarted({ resource, ageMs: () => decide.copyAgeMs(age, clock.now()) }, signal);
    },
    listed(): void {
      age = decide.confirmed(clock.now());
      observer.copyListed({ resource, cause });
      cause = 'due';
    },
    watchOpened: (): void => void (age = decide.afterWatchOpened(age, clock.now())),
    received: (): void => void (age = decide.afterReceived(age, clock.now())),
    watchEnded(outcome: WatchOutcome): void {
      const result = decide.watchResult(outcome);
      age = decide.afterWatchEnded(age, result === 'ended', clock.now());
      observer.copyWatchEnded({ resource, result });
      // A watch that is refused does not change why the next list becomes necessary.
      if (result !== 'refused') cause = decide.causeAfter(result);
    },
  };
}

/** Calls `parse` once for each object, as long as it exists: objects in a copy never change. */
export function parseOnce<Parsed>(parse: (object: KubeObject) => Parsed): (object: KubeObject) => Parsed {
  const known = new WeakMap<KubeObject, { readonly parsed: Parsed }>();
  return (object) => {
    const entry = known.get(object) ?? { parsed: parse(object) };
    known.set(object, entry);
    return entry.parsed;
  };
}
