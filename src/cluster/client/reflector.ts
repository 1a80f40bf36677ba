/**
 * Keeps a copy of all objects of one kind up to date. `start` runs `list-watch-loop.ts` until its signal aborts:
 *
 *      ┌────── time for a list, events lost, or version expired ───────┐
 *      ▼                                                               │
 *     list ─── succeeded ──▶ watch ─── ended ──▶ delay ──▶ watch ─ … ──┤
 *      ▲  failed │             │ refused                               │
 *      └ backoff ┘             └────────── backoff ──▶ watch ─ … ──────┘
 *
 * A list replaces the contents of `object-copy.ts`, a watch applies event by event. Lists are repeated periodically, since a watch may go silent
 * without an error. Subscribers (`changes`) are woken immediately by the first list, by urgent changes, and when the server becomes unreachable or
 * reachable again; by other changes within `BATCH_MS`. They then read `items` and `health`, which never send a request.
 */
import type { Clock, Wake } from '../../reconciler/ports.ts';
import { type Failure, type Result, ok } from '../../schema/failure.ts';
import { createClock } from '../../platform/clock.ts';
import { addWake } from '../../platform/wakes.ts';
import { createCopyRecord, type CopyObserver } from './copy-record.ts';
import { resourceName } from './decide/resource-path.ts';
import { watchSeconds } from './decide/watch-delay.ts';
import { NO_OBSERVER } from './kube-observer.ts';
import { runListWatchLoop } from './list-watch-loop.ts';
import { createObjectCopy, type IsUrgent } from './object-copy.ts';
import type { KubeApi, KubeObject, Reflector, ResourceType, Transform } from './ports.ts';
import { readWatch, type WatchOutcome } from './read-watch.ts';

export interface ReflectorOptions {
  readonly api: KubeApi;
  readonly type: ResourceType;
  readonly labelSelector?: string;
  /** Must keep name, UID and resource version. Default: removes `managedFields`, which take half the size of an object. */
  readonly transform?: Transform;
  /** Whether a change wakes subscribers immediately instead of together with others. Removals always do. Default: all changes are urgent. */
  readonly isUrgent?: IsUrgent;
  readonly clock?: Clock;
  /** Returns a number in [0, 1). */
  readonly random?: () => number;
  /** Interval of the periodic lists, plus or minus a tenth. */
  readonly relistMs?: number;
  /** A watch that has sent bookmarks before is given up if nothing is received for this long. Servers send a bookmark about every minute. */
  readonly silentMs?: number;
  readonly observer?: CopyObserver;
}

const RELIST_MS = 600_000;
const SILENT_MS = 180_000;
const BATCH_MS = 200;

export function createReflector(options: ReflectorOptions): Reflector {
  const { api, type, labelSelector, transform = withoutManagedFields, clock = createClock(), random = Math.random } = options;
  const { relistMs = RELIST_MS, silentMs = SILENT_MS } = options;
  const copy = createObjectCopy(transform, options.isUrgent);
  const record = createCopyRecord(resourceName(type), clock, options.observer ?? NO_OBSERVER);
  const wakes = new Set<Wake>();
  let listed = false;
  let outage: { readonly sinceMs: number; readonly message: string } | undefined;

  function wakeAll(withinMs?: number): void {
    for (const wake of wakes) wake(withinMs);
  }

  const changed = (): void => wakeAll(copy.consumeUrgency() ? 0 : BATCH_MS);

  function reached(): void {
    if (outage === undefined) return;
    outage = undefined;
    wakeAll();
  }

  function failed({ message }: Failure): void {
    const isNew = outage === undefined;
    outage = { sinceMs: outage?.sinceMs ?? clock.now(), message };
    if (isNew) wakeAll();
  }

  async function list(signal: AbortSignal): Promise<Result<void>> {
    const begun = copy.beginList();
    // Most listed objects are known already: keeping the known ones avoids holding thousands of objects twice.
    const transformNew = (object: KubeObject): KubeObject => copy.sameVersion(object) ?? transform(object);
    const answer = await api.list(type, { transform: transformNew, ...(labelSelector === undefined ? {} : { labelSelector }) }, signal);
    if (!answer.ok) return answer;
    const hasChanged = copy.replaceAll(answer.value, begun);
    const wakesAnyway = !listed || outage !== undefined;
    listed = true;
    outage = undefined;
    record.listed();
    if (wakesAnyway) wakeAll();
    else if (hasChanged) changed();
    return ok(undefined);
  }

  async function watch(relistAt: number, signal: AbortSignal): Promise<WatchOutcome> {
    const untilRelistS = Math.max(1, Math.ceil((relistAt - clock.now()) / 1000));
    const timeoutSeconds = Math.min(watchSeconds(random()), untilRelistS + 1);
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: copy.resourceVersion(),
      timeoutSeconds: String(timeoutSeconds),
      labelSelector,
    };
    const limits = { clock, relistAt, endBy: clock.now() + timeoutSeconds * 1000, silentMs };
    const sink = { fold, opened, changed };
    const outcome = await readWatch(async (stop) => await api.stream(type, { query }, stop), limits, sink, signal);
    if (!signal.aborted) record.watchEnded(outcome);
    return outcome;
  }

  function opened(): void {
    record.watchOpened();
    reached();
  }

  function fold(event: unknown): ReturnType<typeof copy.fold> {
    const folded = copy.fold(event);
    if (folded.step.kind !== 'expired' && folded.step.kind !== 'failed') record.received();
    return folded;
  }

  return {
    items: copy.items,
    health() {
      if (outage !== undefined) return { kind: 'unreachable', ...outage, listed };
      return { kind: listed ? 'current' : 'starting' };
    },
    noteWritten(object) {
      if (copy.noteWritten(object)) changed();
    },
    noteRemoved(name, uid) {
      if (copy.noteRemoved(name, uid)) changed();
    },
    changes: (wake, signal) => addWake(wakes, wake, signal),
    start(signal) {
      record.started(signal);
      void runListWatchLoop({ list, watch, onFailure: failed, clock, random, relistMs }, signal);
    },
  };
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata }: KubeObject['metadata'] & { readonly managedFields?: unknown } = object.metadata;
  return { ...object, metadata };
}
