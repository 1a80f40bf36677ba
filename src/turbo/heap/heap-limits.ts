/**
 * V8 reads these flags each time it considers growing its heap. Without requests a small young generation saves 20 MB;
 * under load it must grow, or garbage collection costs an eighth of the throughput.
 */
import { executionAsyncResource } from 'node:async_hooks';
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Both halves of the young generation: V8 would take 130 MB for the passes over 2,000 slots. */
const YOUNG_FOR_MANY_SLOTS_BYTES = 16 * 1024 * 1024;

const YOUNG_STAYS = '--semi-space-growth-factor=1';
const YOUNG_DOUBLES = '--semi-space-growth-factor=2';
/** Grows by half the size of its live objects. */
const OLD_GROWS_SLOWLY = '--heap-growing-percent=50';
/**
 * By as much as they have. V8 allows 5 MB after it has collected at a quiet moment, so that the next burst of requests
 * begins with another collection, and waits for it for 50 ms.
 */
const OLD_DOUBLES = '--heap-growing-percent=100';

/** Must be called before the heap has grown: first thing in the process. */
export function keepYoungHeapSmall(): void {
  setFlagsFromString(YOUNG_STAYS);
}

export function createHeapLimits() {
  let traffic = false;
  let many = false;
  return {
    /** When requests arrive. Repeated calls cost nothing. */
    growForTraffic(): void {
      if (traffic) return;
      traffic = true;
      setFlagsFromString(YOUNG_DOUBLES);
      if (!many) setFlagsFromString(OLD_DOUBLES);
    },
    /** A small young generation collects the garbage of many slots at a higher cost. Repeated calls cost nothing. */
    growForManySlots(): void {
      if (many) return;
      many = true;
      setFlagsFromString(OLD_GROWS_SLOWLY);
      setFlagsFromString(YOUNG_DOUBLES);
      // Collecting while idle shrinks the young generation, and the next pass needs it again.
      const observer = new PerformanceObserver(() => {
        if (!traffic) setFlagsFromString(youngBytes() < YOUNG_FOR_MANY_SLOTS_BYTES ? YOUNG_DOUBLES : YOUNG_STAYS);
      });
      observer.observe({ entryTypes: ['gc'] });
    },
  };
}

const youngBytes = (): number => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;

const kept: object[] = [];

/**
 * Keeps `process.nextTick` fast; call it first in each process that serves requests. If V8 collects garbage while no
 * object of `nextTick` exists, it makes each one six times as slowly from then on (Node 24).
 */
export function keepTickShape(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}
