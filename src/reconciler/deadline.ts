/** Time limits on the loop's own clock, so that they follow simulated time in tests. */
import type { Clock } from './ports.ts';

/** Runs work that must finish within `ms`. If it does not, aborts the work's own signal and rejects. */
export type Deadline = <Value>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>) => Promise<Value>;

export function createDeadline(clock: Clock): Deadline {
  return async (ms, signal, work) => {
    const own = new AbortController();
    return await new Promise((resolve, reject) => {
      const end = (error: Error): void => {
        own.abort(error);
        reject(error);
      };
      const leave = (): void => end(new Error('The loop has ended'));
      const cancel = clock.at(clock.now() + ms, () => end(new Error(`No answer within ${ms / 1000} s`)));
      signal.addEventListener('abort', leave, { once: true });
      work(own.signal)
        .then(resolve, reject)
        .finally(() => {
          cancel();
          signal.removeEventListener('abort', leave);
        });
    });
  };
}
