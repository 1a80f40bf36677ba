/** Prints how many major collections 20 MB more cause after everything was collected while idle. Argument: whether requests have arrived. */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { createHeapLimits, keepYoungHeapSmall } from '../../../../src/turbo/heap/heap-limits.ts';

const MB = 1024 * 1024;
keepYoungHeapSmall();
if (process.argv[2] === 'traffic') createHeapLimits().growForTraffic();
/** As many objects of 64 KB, which are kept. */
const fill = (bytes: number): unknown[] => Array.from({ length: bytes / (64 * 1024) }, () => Array.from({ length: 8 * 1024 }, () => 1.5));
const kept = [fill(40 * MB)];
const session = new Session();
session.connect();
await session.post('HeapProfiler.collectGarbage');
session.disconnect();

let major = 0;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = z.object({ detail: z.object({ kind: z.number() }) }).parse(entry.toJSON());
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) major += 1;
  }
});
observer.observe({ entryTypes: ['gc'] });
for (let step = 0; step < 20; step += 1) {
  kept.push(fill(MB));
  await pause(10);
}
await pause(200);
process.stdout.write(String(kept.length > 0 ? major : -1));
