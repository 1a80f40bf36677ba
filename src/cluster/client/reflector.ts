/**
 * Keeps a copy of all objects of one kind up to date: list, then watch, and a list now and then although nothing asks for it, since a watch may go
 * silent without any error. Never asks in a hot loop: whatever fails or ends early is tried again later and later.
 */
import type { Clock, Wake } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/failure.ts';
import { resourcePath } from './decide/resource-path.ts';
import { failuresAfter, relistDelayMs, retryDelayMs, rewatchDelayMs, watchSeconds } from './decide/watch-delay.ts';
import { createObjectCopy } from './object-copy.ts';
import type { IsUrgent } from './object-copy.ts';
import type { KubeApi, KubeObject, Reflector, ResourceType } from './ports.ts';
import { readWatch } from './read-watch.ts';
import { pause } from '../../platform/pause.ts';

export interface ReflectorOptions {
  readonly api: KubeApi;
  readonly type: ResourceType;
  readonly labelSelector?: string;
  /** What is stored of each object: there are thousands, and managed fields are half of one. Must keep name, uid and resource version. */
  readonly keep?: (object: KubeObject) => KubeObject;
  /** Other changes are told a moment later, together. Default: all are urgent; that an object is gone always is. */
  readonly isUrgent?: IsUrgent;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** How often the whole is listed anew, give or take a tenth. */
  readonly relistMs?: number;
  /** A watch that has told of its progress before, and tells nothing for so long, is given up. Servers tell about every minute. */
  readonly silentMs?: number;
}

const RELIST_MS = 600_000;
const SILENT_MS = 180_000;
const GATHERED_WITHIN_MS = 200;

const WALL_CLOCK: Clock = {
  now: () => Date.now(),
  at(at, callback) {
    const timer = setTimeout(callback, Math.max(0, at - Date.now()));
    return () => clearTimeout(timer);
  },
};

/** The most that is usually wanted of an object: all of it but who owns which field. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata }: KubeObject['metadata'] & { readonly managedFields?: unknown } = object.metadata;
  return { ...object, metadata };
}

export function createReflector(options: ReflectorOptions): Reflector {
  const { api, type, labelSelector, keep = withoutManagedFields, clock = WALL_CLOCK, random = Math.random } = options;
  const { relistMs = RELIST_MS, silentMs = SILENT_MS } = options;
  const copy = createObjectCopy(keep, options.isUrgent);
  const wakes = new Set<Wake>();
  let listed = false;
  let waiting: (() => void)[] = [];
  let waitingReason: { readonly sinceMs: number; readonly message: string } | undefined;

  function wakeAll(): void {
    for (const wake of wakes) wake();
  }

  function tellChange(): void {
    const withinMs = copy.takeUrgency() ? 0 : GATHERED_WITHIN_MS;
    for (const wake of wakes) wake(withinMs);
  }

  function noteReached(): void {
    if (waitingReason === undefined) return;
    waitingReason = undefined;
    wakeAll();
  }

  function noteTrouble({ message }: Failure): void {
    const isNew = waitingReason === undefined;
    waitingReason = { sinceMs: waitingReason?.sinceMs ?? clock.now(), message };
    if (isNew) wakeAll();
  }

  async function list(signal: AbortSignal): Promise<Result<void>> {
    const begun = copy.beginList();
    // Most of a list that is read again is known: two copies of thousands of objects need not lie side by side.
    const keepNew = (object: KubeObject): KubeObject => copy.held(object) ?? keep(object);
    const answer = await api.list(type, { keep: keepNew, ...(labelSelector === undefined ? {} : { labelSelector }) }, signal);
    if (!answer.ok) return answer;
    const changed = copy.replaceAll(answer.value, begun);
    const isNews = !listed || waitingReason !== undefined;
    listed = true;
    waitingReason = undefined;
    for (const resolve of waiting.splice(0)) resolve();
    if (isNews) wakeAll();
    else if (changed) tellChange();
    return { ok: true, value: undefined };
  }

  async function watch(relistAt: number, signal: AbortSignal): ReturnType<typeof readWatch> {
    const untilRelistS = Math.max(1, Math.ceil((relistAt - clock.now()) / 1000));
    const timeoutSeconds = Math.min(watchSeconds(random()), untilRelistS + 1);
    const path = resourcePath({
      type,
      namespace: api.namespace,
      query: {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: copy.resourceVersion(),
        timeoutSeconds: String(timeoutSeconds),
        labelSelector,
      },
    });
    if (!path.ok) return { kind: 'refused', failure: path.failure };
    const open = async (stop: AbortSignal): ReturnType<KubeApi['stream']> => await api.stream(path.value, stop);
    const limits = { clock, relistAt, endBy: clock.now() + timeoutSeconds * 1000, silentMs };
    return await readWatch(open, limits, { fold: (event) => copy.fold(event), opened: noteReached, changed: tellChange }, signal);
  }

  async function run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let relistAt = Number.NEGATIVE_INFINITY;
    const retry = async (failure: Failure, waited: number): Promise<void> => {
      if (signal.aborted) return;
      const untilMs = failure.until === undefined ? 0 : failure.until - clock.now();
      await pause(clock, Math.max(untilMs, retryDelayMs(waited, random())), signal);
    };
    while (!signal.aborted) {
      if (clock.now() >= relistAt) {
        const answer = await list(signal);
        if (!answer.ok) {
          failures += 1;
          if (!signal.aborted) noteTrouble(answer.failure);
          await retry(answer.failure, failures);
          continue;
        }
        relistAt = clock.now() + relistDelayMs(relistMs, random());
      }
      const end = await watch(relistAt, signal);
      if (signal.aborted) return;
      if (end.kind === 'due') {
        relistAt = Number.NEGATIVE_INFINITY;
        continue;
      }
      if (end.kind === 'refused') {
        if (end.failure.reason !== 'Expired') noteTrouble(end.failure);
        else relistAt = Number.NEGATIVE_INFINITY;
        // The first time, a version that is too old is the ordinary end of a long absence.
        await retry(end.failure, end.failure.reason === 'Expired' ? failures : failures + 1);
        failures += 1;
        continue;
      }
      const before = failures;
      failures = failuresAfter(failures, end);
      if (end.kind === 'lost') {
        relistAt = Number.NEGATIVE_INFINITY;
        await retry(LOST, before === 0 ? 0 : failures);
      } else await pause(clock, rewatchDelayMs(failures, end, random()), signal);
    }
  }

  return {
    items: () => copy.items(),
    health: () =>
      !listed && waitingReason === undefined
        ? { kind: 'starting' }
        : waitingReason === undefined
          ? { kind: 'current' }
          : { kind: 'unreachable', ...waitingReason },
    noteWritten(object) {
      if (copy.noteWritten(object)) tellChange();
    },
    noteRemoved(name, uid) {
      if (copy.noteRemoved(name, uid)) tellChange();
    },
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
    start(signal) {
      void run(signal);
    },
    async ready(signal) {
      if (listed || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          waiting = waiting.filter((one) => one !== done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        waiting.push(done);
        signal.addEventListener('abort', done, { once: true });
      });
    },
  };
}

const LOST: Failure = { kind: 'retry', reason: 'Expired', message: 'Events of the watch were lost' };
