/** Limits how much work runs at the same time. */
export function createSemaphore(limit: number) {
  const waiting = new Set<() => void>();
  let acquired = 0;

  async function nextTurn(signal: AbortSignal | undefined): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const finish = (proceeds: boolean): void => {
        waiting.delete(proceed);
        signal?.removeEventListener('abort', giveUp);
        resolve(proceeds);
      };
      const proceed = (): void => finish(true);
      const giveUp = (): void => finish(false);
      waiting.add(proceed);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  return {
    /** How many callers wait. */
    get waiting() {
      return waiting.size;
    },
    /**
     * Resolves, in the order of the calls, to whether the caller may proceed and must then `release`: false once the
     * signal aborts.
     */
    async acquire(signal?: AbortSignal): Promise<boolean> {
      if (signal?.aborted === true) return false;
      if (acquired === limit) return await nextTurn(signal);
      acquired += 1;
      return true;
    },
    release(): void {
      // The first caller in the queue takes over, so `acquired` does not change.
      const [next] = waiting;
      if (next === undefined) acquired -= 1;
      else next();
    },
  };
}

/** Runs work with the same key one at a time, in the order of the calls. Work with different keys runs concurrently. */
export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const result = (tails.get(key) ?? Promise.resolve()).then(work);
    const tail = result.catch(() => undefined);
    tails.set(key, tail);
    try {
      return await result;
    } finally {
      if (tails.get(key) === tail) tails.delete(key);
    }
  };
}

/**
 * Runs work one at a time. Callers that wait share one run, which begins after all of their calls, so that its result
 * includes what they did before.
 */
export function shareRuns<T>(work: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  const runAfter = async (before: Promise<unknown>): Promise<T> => {
    await before.catch(() => undefined);
    next = undefined;
    return await work();
  };
  return async () => {
    next ??= runAfter(last);
    last = next;
    return await next;
  };
}

/** More open files at once would exhaust the descriptors of a process with a low limit. */
const FILES_AT_ONCE = 16;

/** Maps items with work that opens files, a few at a time. */
export async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += FILES_AT_ONCE)
    results.push(...(await Promise.all(items.slice(from, from + FILES_AT_ONCE).map(work))));
  return results;
}
