/** Lets so many pieces of work run at once; the others wait in order. */
export interface RequestGate {
  /** Resolves when there is room: true, and `leave` must follow; or false at once when the signal aborts. */
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
        const settle = (entered: boolean): void => {
          waiting.delete(go);
          signal.removeEventListener('abort', give);
          resolve(entered);
        };
        const go = (): void => settle(true);
        const give = (): void => settle(false);
        waiting.add(go);
        signal.addEventListener('abort', give, { once: true });
      });
    },
    leave() {
      // The place passes to the next one in line, so `running` stays as it is.
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else next();
    },
  };
}
