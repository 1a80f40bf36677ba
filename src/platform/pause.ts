/** Pauses that end early, without an error, when a signal aborts. */
import { setTimeout as timeout } from 'node:timers/promises';
import type { Clock } from '../reconciler/ports.ts';

/** Resolves after `ms` milliseconds of this clock, or at once when the signal aborts. */
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

/** The same in real time. It does not keep the process from ending. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await timeout(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
