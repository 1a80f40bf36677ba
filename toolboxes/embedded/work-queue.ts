/** Runs jobs on a fixed set of workers. A limited number of jobs wait for a free worker, in the order of their arrival. */

export interface WorkQueue<Worker> {
  /** Runs a job as soon as a worker is free. Resolves to `full` if too many jobs wait, and to `aborted` if the signal aborts the wait. */
  run<T>(job: (worker: Worker) => Promise<T>, signal: AbortSignal): Promise<T | 'full' | 'aborted'>;
  /** Adds a worker, which takes the job that has waited longest. */
  add(worker: Worker): void;
}

export function createWorkQueue<Worker>(workers: readonly Worker[], maxWaiting: number): WorkQueue<Worker> {
  const free = [...workers];
  const waiting: ((worker: Worker) => void)[] = [];

  async function acquire(signal: AbortSignal): Promise<{ readonly worker: Worker } | 'full' | 'aborted'> {
    if (signal.aborted) return 'aborted';
    const ready = free.pop();
    if (ready !== undefined) return { worker: ready };
    if (waiting.length >= maxWaiting) return 'full';
    return new Promise((resolve) => {
      const accept = (worker: Worker): void => {
        signal.removeEventListener('abort', leave);
        resolve({ worker });
      };
      const leave = (): void => {
        waiting.splice(waiting.indexOf(accept), 1);
        resolve('aborted');
      };
      waiting.push(accept);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  const add = (worker: Worker): void => {
    const next = waiting.shift();
    if (next === undefined) free.push(worker);
    else next(worker);
  };

  return {
    add,
    async run(job, signal) {
      const acquired = await acquire(signal);
      if (acquired === 'full' || acquired === 'aborted') return acquired;
      try {
        return await job(acquired.worker);
      } finally {
        add(acquired.worker);
      }
    },
  };
}
