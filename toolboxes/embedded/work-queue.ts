/** Lets a bounded number of jobs run at once, and a bounded number wait in the order they came. */

export interface WorkQueue<Seat> {
  /** Waits for a seat, runs, gives the seat back. `full` when too many wait already; a wait ends with its signal. */
  run<T>(job: (seat: Seat) => Promise<T>, signal: AbortSignal): Promise<T | 'full' | 'aborted'>;
  /** One more seat, for whoever waits longest. */
  add(seat: Seat): void;
}

export function createWorkQueue<Seat>(seats: readonly Seat[], maxWaiting: number): WorkQueue<Seat> {
  const free = [...seats];
  const waiting: ((seat: Seat) => void)[] = [];

  async function takeSeat(signal: AbortSignal): Promise<{ readonly seat: Seat } | 'full' | 'aborted'> {
    if (signal.aborted) return 'aborted';
    const ready = free.pop();
    if (ready !== undefined) return { seat: ready };
    if (waiting.length >= maxWaiting) return 'full';
    return new Promise((resolve) => {
      const take = (given: Seat): void => {
        signal.removeEventListener('abort', leave);
        resolve({ seat: given });
      };
      const leave = (): void => {
        waiting.splice(waiting.indexOf(take), 1);
        resolve('aborted');
      };
      waiting.push(take);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  const add = (seat: Seat): void => {
    const next = waiting.shift();
    if (next === undefined) free.push(seat);
    else next(seat);
  };

  return {
    add,
    async run(job, signal) {
      const given = await takeSeat(signal);
      if (given === 'full' || given === 'aborted') return given;
      try {
        return await job(given.seat);
      } finally {
        add(given.seat);
      }
    },
  };
}
