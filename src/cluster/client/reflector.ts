/**
 * Keeps a copy of all objects of one kind up to date. `start` runs this loop until its signal aborts:
 *
 *      ┌────── time for a list, events lost, or version expired ───────┐
 *      ▼                                                               │
 *     list ─── succeeded ──▶ watch ─── ended ──▶ delay ──▶ watch ─ … ──┤
 *      ▲  failed │             │ refused                               │
 *      └ backoff ┘             └────────── backoff ──▶ watch ─ … ──────┘
 *
 * A list replaces the contents of `object-copy.ts`, a watch applies event by event. Lists are repeated periodically,
 * since a watch may go silent without an error. Subscribers (`changes`) are woken immediately by the first list, by
 * urgent changes, and when the server becomes unreachable or reachable; by other changes within `BATCH_MS`. They then
 * read `items` and `health`, which never send a request.
 */
import type { Clock, Wake } from '../../reconciler/ports.ts';
import { fail, ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { defined } from '../../schema/pod/kube-fields.ts';
import { createClock, addWake, pause } from '../../platform/clock.ts';
import { createCopyRecord, createObjectCopy, type CopyObserver, type IsUrgent } from './object-copy.ts';
import * as decide from './decide/choose-list.ts';
import { compareVersions } from './decide/object-fields.ts';
import { resourceName } from './decide/resource-path.ts';
import { NO_OBSERVER } from './client-observer.ts';
import type { KubeApi, KubeObject, ObjectList, Reflector, ResourceType, Transform } from './ports.ts';
import { readStreamedList } from './read-list.ts';
import { readWatch, type ListDue, type WatchOutcome } from './read-watch.ts';

export interface ReflectorOptions {
  readonly api: KubeApi;
  readonly type: ResourceType;
  readonly labelSelector?: string;
  /** `metadata.name=…`, which a Role may grant by its name. */
  readonly fieldSelector?: string;
  /** Must keep name, UID and resource version. Default: removes `managedFields`, half the size of an object. */
  readonly transform?: Transform;
  /** Whether a change wakes subscribers at once instead of within `BATCH_MS`. Removals do. Default: all changes. */
  readonly isUrgent?: IsUrgent;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Interval of the lists while watches send bookmarks, plus or minus a tenth; otherwise at most ten minutes. */
  readonly relistMs?: number;
  /** A watch with bookmarks, which servers send every minute, is given up if nothing is received for this long. */
  readonly silentMs?: number;
  readonly observer?: CopyObserver;
}

export interface RefreshableReflector extends Reflector {
  /** Reads the newest state, in as many attempts as that takes. Resolves when read, or when the signal aborts. */
  refresh(signal: AbortSignal): Promise<void>;
}

export function wasListed(copy: Pick<Reflector, 'health'>): boolean {
  const health = copy.health();
  return health.kind === 'unreachable' ? health.listed : health.kind === 'current';
}

const RELIST_MS = 21_600_000;
const SILENT_MS = 180_000;
const BATCH_MS = 200;

export function createReflector(options: ReflectorOptions): RefreshableReflector {
  const { api, type, transform = withoutManagedFields, clock = createClock(), random = Math.random } = options;
  const { labelSelector, fieldSelector, relistMs = RELIST_MS, silentMs = SILENT_MS } = options;
  const selectors = defined({ labelSelector, fieldSelector });
  const copy = createObjectCopy(transform, options.isUrgent);
  const record = createCopyRecord(resourceName(type), clock, options.observer ?? NO_OBSERVER);
  const wakes = new Set<Wake>();
  const refreshes = new Map<() => void, number>();
  let relist = new AbortController();
  let streams = true;
  let listed = false;
  let outage: { readonly sinceMs: number; readonly message: string } | undefined;

  function wakeAll(withinMs?: number): void {
    for (const wake of wakes) wake(withinMs);
  }

  const changed = (): void => wakeAll(copy.consumeUrgency() ? 0 : BATCH_MS);

  function failed({ message }: Failure): void {
    const isNew = outage === undefined;
    outage = { sinceMs: outage?.sinceMs ?? clock.now(), message };
    if (isNew) wakeAll();
  }

  async function read({ streamed, notOlderThan }: decide.ListWay, signal: AbortSignal): Promise<Result<ObjectList>> {
    // Keeping the known objects avoids holding thousands of objects twice.
    const transformNew = (object: KubeObject): KubeObject => copy.sameVersion(object) ?? transform(object);
    if (streamed) return await readStreamedList({ api, type, selectors, from: notOlderThan, transform: transformNew, clock }, signal);
    return await api.list(type, { transform: transformNew, ...defined({ notOlderThan }), ...selectors }, signal);
  }

  async function list(signal: AbortSignal): Promise<Result<void>> {
    const begun = copy.beginList();
    const beganAt = clock.now();
    relist = new AbortController();
    let needs = { version: copy.resourceVersion(), newest: refreshes.size > 0, streams };
    for (;;) {
      const way = decide.chooseList(needs);
      const answer = withoutOlder(way, await read(way, signal));
      if (!answer.ok) {
        const { reason } = answer.failure;
        if (decide.cannotStream(way, reason)) streams = false;
        const next = decide.afterFailedList(way, needs, reason);
        if (next === undefined) return answer;
        needs = next;
        continue;
      }
      replace(answer.value, begun);
      if (decide.isNewest(way)) readNewest(beganAt);
      return ok(undefined);
    }
  }

  function readNewest(beganAt: number): void {
    for (const [done, since] of refreshes) if (beganAt >= since) done();
    // Nobody needs a list after this one.
    if (refreshes.size === 0) relist = new AbortController();
  }

  function replace(next: ObjectList, begun: number): void {
    const hasChanged = copy.replaceAll(next, begun);
    const wakesAnyway = !listed || outage !== undefined;
    listed = true;
    outage = undefined;
    record.listed();
    if (wakesAnyway) wakeAll();
    else if (hasChanged) changed();
  }

  async function refresh(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        refreshes.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      refreshes.set(done, clock.now());
      signal.addEventListener('abort', done, { once: true });
      relist.abort();
    });
  }

  async function watch(due: ListDue, signal: AbortSignal): Promise<WatchOutcome> {
    const untilListS = Math.max(1, Math.ceil((due.bookmarked - clock.now()) / 1000));
    const timeoutSeconds = Math.min(decide.watchSeconds(random()), untilListS + 1);
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: copy.resourceVersion(),
      timeoutSeconds: String(timeoutSeconds),
      ...selectors,
    };
    const limits = { clock, due, endBy: clock.now() + timeoutSeconds * 1000, silentMs };
    const sink = { fold, opened, changed };
    const open = async (stop: AbortSignal) => await api.stream(type, { query }, stop);
    const outcome = await readWatch(open, limits, sink, { signal, relist: relist.signal });
    if (!signal.aborted) record.watchEnded(outcome);
    return outcome;
  }

  function opened(): void {
    record.watchOpened();
    if (outage === undefined) return;
    outage = undefined;
    wakeAll();
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
    refresh,
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

/** A cache that broke its promise would take the copy back in time. */
function withoutOlder({ notOlderThan: oldest }: decide.ListWay, answer: Result<ObjectList>): Result<ObjectList> {
  const order = answer.ok ? compareVersions(answer.value.resourceVersion, oldest) : undefined;
  return order !== undefined && order < 0
    ? fail('retry', 'Expired', `The API server sent a list that is older than version "${oldest}"`)
    : answer;
}

interface ListWatchLoop {
  list(signal: AbortSignal): Promise<Result<void>>;
  watch(due: ListDue, signal: AbortSignal): Promise<WatchOutcome>;
  onFailure(failure: Failure): void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly relistMs: number;
}

/** Interval of the lists while nothing shows that a silent watch is alive. */
const UNPROVEN_RELIST_MS = 600_000;
const NOW: ListDue = { bookmarked: Number.NEGATIVE_INFINITY, otherwise: Number.NEGATIVE_INFINITY };

/** Never sends requests in a hot loop: the delay grows with each failure in a row. */
async function runListWatchLoop({ list, watch, onFailure, ...options }: ListWatchLoop, signal: AbortSignal): Promise<void> {
  const { clock, random, relistMs } = options;
  let failures = 0;
  let due = NOW;
  const waitAfter = async (failure: Failure, delayMs: number): Promise<void> => {
    const untilMs = failure.until === undefined ? 0 : failure.until - clock.now();
    await pause(clock, Math.max(untilMs, delayMs), signal);
  };
  while (!signal.aborted) {
    if (clock.now() >= due.otherwise) {
      const answer = await list(signal);
      if (!answer.ok) {
        failures += 1;
        if (!signal.aborted) onFailure(answer.failure);
        await waitAfter(answer.failure, decide.retryDelayMs(failures, random()));
        continue;
      }
      due = nextLists(clock.now(), relistMs, random());
    }
    const end = await watch(due, signal);
    if (signal.aborted) return;
    if (end.kind === 'relist') {
      due = NOW;
    } else if (end.kind === 'refused') {
      const isExpired = end.failure.reason === 'Expired';
      if (isExpired) due = NOW;
      else onFailure(end.failure);
      failures += 1;
      // The first expired version is normal after a long outage.
      await waitAfter(end.failure, isExpired ? decide.expiredDelayMs(failures - 1, random()) : decide.retryDelayMs(failures, random()));
    } else {
      const isFirst = failures === 0;
      failures = decide.failuresAfter(failures, end);
      if (end.kind === 'lost') due = NOW;
      else if (end.bookmarked) due = { ...due, otherwise: nextLists(clock.now(), relistMs, random()).otherwise };
      const delayMs =
        end.kind === 'lost' ? decide.expiredDelayMs(isFirst ? 0 : failures, random()) : decide.rewatchDelayMs(failures, end, random());
      await pause(clock, delayMs, signal);
    }
  }
}

function nextLists(now: number, relistMs: number, random: number): ListDue {
  return {
    bookmarked: now + decide.relistDelayMs(relistMs, random),
    otherwise: now + decide.relistDelayMs(Math.min(relistMs, UNPROVEN_RELIST_MS), random),
  };
}
