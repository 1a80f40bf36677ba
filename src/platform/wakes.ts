/** Sets of callbacks that run when something changed. */
import type { Wake } from '../reconciler/ports.ts';

/** Adds a callback until the signal aborts. */
export function addWake(wakes: Set<Wake>, wake: Wake, signal: AbortSignal): void {
  if (signal.aborted) return;
  wakes.add(wake);
  signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
}
