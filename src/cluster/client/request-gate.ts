/** A semaphore: limits how many requests run at the same time. The others wait in order. Resolves with undefined if the signal aborts during the wait. */
export type RequestGate = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T | undefined>;

export function createRequestGate(limit: number): RequestGate {
  const waiting = new Set<() => void>();
  let running = 0;

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

  return async (signal, work) => {
    if (signal.aborted) return undefined;
    if (running < limit) running += 1;
    else if (!(await nextPlace(signal))) return undefined;
    try {
      return await work();
    } finally {
      // The next waiting request gets the place, so `running` does not change.
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
