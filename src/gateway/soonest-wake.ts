/** Wakes the reconciler, but not as often as requests come: only the soonest wake since the last look counts. */
import { addWake } from '../platform/wakes.ts';
import type { Wake } from '../reconciler/ports.ts';

export function createSoonestWake() {
  const wakes = new Set<Wake>();
  let requestedMs = Number.POSITIVE_INFINITY;
  return {
    wakeWithin(ms: number) {
      if (ms >= requestedMs || wakes.size === 0) return;
      requestedMs = ms;
      for (const wake of wakes) wake(ms);
    },
    /** The reconciler looks: from now on, any wake is news. */
    looked: () => void (requestedMs = Number.POSITIVE_INFINITY),
    changes: (wake: Wake, signal: AbortSignal) => addWake(wakes, wake, signal),
  };
}
