/** A semaphore: limits how many requests run at the same time. The others wait in order. */
export interface RequestGate {
  /** Resolves with true when a place is free; the caller must then call `leave`. Resolves with false when the signal aborts. */
  enter(signal: AbortSignal): Promise<boolean>;
  leave(): void;
}

export function createRequestGate(limit: number): RequestGate {
  const waiting = new Set<() => void>();
  let running = 0;
  return {
    async enter(signal) {
      if (signal.aborted) return false;
      if (running < limit) {
        running += 1;
        return true;
      }
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
    },
    leave() {
      // The next waiting request gets the place, so `running` does not change.
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else next();
    },
  };
}
