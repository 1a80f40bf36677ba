/**
 * How V8's heap grows. While nobody asks for anything its young generation stays small, which saves some 20 MB at rest; under load it must grow, or garbage
 * collection costs an eighth of the throughput. Many slots want something between, and an old generation that does not grow to several times what lives in it
 * before it is collected. V8 looks at these flags each time it thinks of growing.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Both halves of the young generation: V8 would take 130 MB for the passes over 2,000 slots. */
const YOUNG_FOR_MANY_SLOTS_BYTES = 16 * 1024 * 1024;

const YOUNG_STAYS = '--semi-space-growth-factor=1';
const YOUNG_DOUBLES = '--semi-space-growth-factor=2';
/** By half of what lives in it. */
const OLD_STAYS_CLOSE = '--heap-growing-percent=50';

export interface HeapLimits {
  /** Requests come. Costs nothing when called again. */
  growForTraffic(): void;
  /** What each pass leaves behind costs more to collect in a small young heap than that saves. Costs nothing when called again. */
  growForManySlots(): void;
}

/** To be called before the heap has grown: first thing in the process. */
export function keepYoungHeapSmall(): void {
  setFlagsFromString(YOUNG_STAYS);
}

export function createHeapLimits(): HeapLimits {
  let traffic = false;
  let many = false;
  return {
    growForTraffic() {
      if (traffic) return;
      traffic = true;
      setFlagsFromString(YOUNG_DOUBLES);
    },
    growForManySlots() {
      if (many) return;
      many = true;
      setFlagsFromString(OLD_STAYS_CLOSE);
      setFlagsFromString(YOUNG_DOUBLES);
      // A collection at rest takes the room back that passes want again.
      const observer = new PerformanceObserver(() => {
        if (!traffic) setFlagsFromString(youngBytes() < YOUNG_FOR_MANY_SLOTS_BYTES ? YOUNG_DOUBLES : YOUNG_STAYS);
      });
      observer.observe({ entryTypes: ['gc'] });
    },
  };
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
}
