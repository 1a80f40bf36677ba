/** Waits for some time. An abort ends the wait early and is not an error. */
import { setTimeout as timeout } from 'node:timers/promises';
import type { Clock } from '../reconciler/ports.ts';

/** Resolves after `ms` milliseconds of this clock, or as soon as the signal aborts. */
export async function pause(clock: Pick<Clock, 'now' | 'at'>, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || ms <= 0) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.at(clock.now() + ms, done);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Like `pause()`, in real time. With a signal it belongs to a background loop and does not keep the process alive; without one it does. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await timeout(ms, undefined, { ref: signal === undefined, ...(signal === undefined ? {} : { signal }) }).catch(() => undefined);
}
