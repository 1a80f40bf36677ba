/** A limited number of places for work that runs at the same time. Those who find none free wait in order. */
interface Places {
  /** Resolves to whether the caller has a place, which it must then leave; false once the signal aborts. */
  take(signal: AbortSignal): Promise<boolean>;
  leave(): void;
}

export function createPlaces(limit: number): Places {
  const waiting = new Set<() => void>();
  let taken = 0;

  async function nextPlace(signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const finish = (entered: boolean): void => {
        waiting.delete(enter);
        signal.removeEventListener('abort', giveUp);
        resolve(entered);
      };
      const enter = (): void => finish(true);
      const giveUp = (): void => finish(false);
      waiting.add(enter);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  return {
    async take(signal) {
      if (signal.aborted) return false;
      if (taken === limit) return await nextPlace(signal);
      taken += 1;
      return true;
    },
    leave() {
      // The next one that waits gets the place, so that `taken` does not change.
      const [next] = waiting;
      if (next === undefined) taken -= 1;
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
