/** Lets a limited number of requests work at once. The others wait, in the order of their arrival, and a limited number of them. */

export interface Turns {
  /** A place for a request, from its arrival on; undefined if too many requests are there already. */
  enter(): Place | undefined;
  /** Requests that have a place. */
  readonly size: number;
}

export interface Place {
  /** Resolves when the request may work; rejects with the reason of the signal. */
  turn(signal: AbortSignal): Promise<void>;
  leave(): void;
}

export function createTurns(working: number, waiting: number): Turns {
  const queue: (() => void)[] = [];
  let free = working;
  let size = 0;

  const giveBack = (): void => {
    const next = queue.shift();
    if (next === undefined) free += 1;
    else next();
  };
  const take = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = (): void => {
      queue.splice(queue.indexOf(resolve), 1);
      reject(signal.reason);
    };
    queue.push(resolve);
    signal.addEventListener('abort', abort, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', abort));
  };

  return {
    enter() {
      if (size >= working + waiting) return undefined;
      size += 1;
      let has = false;
      let left = false;
      return {
        async turn(signal) {
          await take(signal);
          has = true;
        },
        leave() {
          if (left) return;
          left = true;
          size -= 1;
          if (has) giveBack();
        },
      };
    },
    get size() {
      return size;
    },
  };
}
