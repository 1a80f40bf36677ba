/**
 * A keyed, rate-limited queue of writes. `write` decides what to write when the key is processed, so only the newest
 * state is written.
 *
 *     enqueue → ready → writing → done
 *                ↑         │
 *                └─ later ←┘  at the time that `write` returned
 */
import type { Clock } from '../../reconciler/ports.ts';

interface WriteQueueOptions<Key> {
  readonly clock: Clock;
  readonly concurrency: number;
  /** Returns when to write the key again (monotonic milliseconds). A flush does not wait for that. */
  readonly write: (key: Key, flushing: boolean) => Promise<number | undefined> | number | undefined;
}

/** Keys whose times are this close are written together. */
const TIMER_TOLERANCE_MS = 20;

export function createWriteQueue<Key>({ clock, concurrency, write }: WriteQueueOptions<Key>) {
  const ready = new Set<Key>();
  const later = new Map<Key, number>();
  const writing = new Set<Key>();
  /** Not later than any time in `later`; may be earlier, after a key was removed. */
  let earliest = Number.POSITIVE_INFINITY;
  let pausedUntil = 0;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  let flushed: PromiseWithResolvers<void> | undefined;

  const run = (): void => {
    while (writing.size < concurrency && (flushed !== undefined || clock.now() >= pausedUntil)) {
      const key = ready.values().find((each) => !writing.has(each));
      if (key === undefined) break;
      ready.delete(key);
      const again = write(key, flushed !== undefined);
      if (again instanceof Promise) void finish(key, again);
      else if (again !== undefined) postpone(key, again);
    }
    setTimer();
    if (ready.size + writing.size === 0) endFlush();
  };
  const finish = async (key: Key, result: Promise<number | undefined>): Promise<void> => {
    writing.add(key);
    const again = await result;
    writing.delete(key);
    if (again !== undefined && !ready.has(key)) postpone(key, again);
    run();
  };
  const postpone = (key: Key, until: number): void => {
    later.set(key, until);
    earliest = Math.min(earliest, until);
  };
  const setTimer = (): void => {
    if (later.size === 0) earliest = Number.POSITIVE_INFINITY;
    const isPaused = ready.size > 0 && clock.now() < pausedUntil;
    const at = isPaused ? Math.min(pausedUntil, earliest) : earliest;
    if (timer !== undefined && timer.at <= at && at !== Number.POSITIVE_INFINITY) return;
    timer?.cancel();
    timer = at === Number.POSITIVE_INFINITY ? undefined : { at, cancel: clock.at(Math.max(at, clock.now() + 1), onTimer) };
  };
  const onTimer = (): void => {
    timer = undefined;
    const until = clock.now() + TIMER_TOLERANCE_MS;
    for (const [key, at] of later) {
      if (at > until) continue;
      later.delete(key);
      ready.add(key);
    }
    earliest = Math.min(...later.values());
    run();
  };
  const endFlush = (): void => {
    flushed?.resolve();
    flushed = undefined;
  };

  return {
    /** Replaces a later time. */
    enqueue(key: Key): void {
      later.delete(key);
      ready.add(key);
      run();
    },
    /** Ends a flush, whose remaining writes would fail. */
    pauseUntil(at: number): void {
      pausedUntil = Math.max(pausedUntil, at);
      endFlush();
    },
    /** Resolves when all keys are written or failed once, or when the queue is paused. */
    async flush(): Promise<void> {
      for (const key of later.keys()) ready.add(key);
      later.clear();
      flushed ??= Promise.withResolvers<void>();
      const { promise } = flushed;
      run();
      await promise;
    },
    /** Writes in progress continue. */
    clear(): void {
      ready.clear();
      later.clear();
      setTimer();
      if (writing.size === 0) endFlush();
    },
    readyCount: (): number => ready.size,
    /** Keys that are due and not written yet. A key that is queued again while it is being written counts twice. */
    waitingCount: (): number => ready.size + writing.size,
  };
}
