/**
 * Controls how V8's heap grows; V8 reads these flags each time it considers growing. Without requests the young
 * generation stays small, which saves 20 MB; under load it must grow, or garbage collection costs an eighth of the
 * throughput. With many slots, the young generation has a limit in between, and the old one is collected earlier.
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

/** Must be called before the heap has grown: first thing in the process. */
export function keepYoungHeapSmall(): void {
  setFlagsFromString(YOUNG_STAYS);
}

export function createHeapLimits() {
  let traffic = false;
  let many = false;
  return {
    /** Call this when requests arrive. Repeated calls cost nothing. */
    growForTraffic(): void {
      if (traffic) return;
      traffic = true;
      setFlagsFromString(YOUNG_DOUBLES);
    },
    /**
     * Call this when there are many slots, whose garbage a small young generation collects at a higher cost. Repeated
     * calls cost nothing.
     */
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
 * Keeps `process.nextTick` fast; call it first in each process that serves requests. Node makes an object per call. If
 * V8 collects garbage while none exists, it forgets their shape and makes each one six times as slowly from then on
 * (Node 24). One object that stays alive prevents that.
 */
export function keepTickShape(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}
