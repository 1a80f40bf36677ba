/** The real clock, pauses, and callbacks that run when something changed. */
import { setTimeout as timeout } from 'node:timers/promises';
import type { Clock, Wake } from '../reconciler/ports.ts';

/** The longest delay of `setTimeout`; a longer one would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    at(at, callback) {
      let timer: NodeJS.Timeout | undefined;
      // A timer may fire a millisecond early.
      const arm = (): void => {
        const leftMs = Math.ceil(at - performance.now());
        timer = setTimeout(() => (at > performance.now() ? arm() : callback()), Math.min(Math.max(leftMs, 0), LONGEST_MS));
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}

/** Resolves after `ms` milliseconds of this clock, or as soon as the signal aborts, which is no error. */
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

/**
 * Like `pause()`, in real time. With a signal it belongs to a background loop and does not keep the process alive;
 * without one it does.
 */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await timeout(ms, undefined, { ref: signal === undefined, ...(signal === undefined ? {} : { signal }) }).catch(() => undefined);
}

const RETRY_PAUSES_MS = [100, 300, 900, 1700];

/**
 * Reads again after an error that a moment may end, such as missing descriptors: it says nothing about what is there.
 * Rejects with the last error.
 */
export async function retryRead<T>(read: () => Promise<T>, wait: (ms: number) => Promise<void> = sleep): Promise<T> {
  for (const ms of RETRY_PAUSES_MS) {
    try {
      return await read();
    } catch {
      await wait(ms);
    }
  }
  return await read();
}

/** Adds a callback until the signal aborts. */
export function addWake(wakes: Set<Wake>, wake: Wake, signal: AbortSignal): void {
  if (signal.aborted) return;
  wakes.add(wake);
  signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
}
