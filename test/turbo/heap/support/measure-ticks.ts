/** Prints the nanoseconds of processor time of one call of `process.nextTick`, the best of some: before and after garbage was collected while there was none. Needs `--expose-gc`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { keepTickShape } from '../../../../src/turbo/heap/heap-limits.ts';

const CALLS = 200_000;
/** From time to time, timers and the kernel have their turn. */
const IN_A_ROW = 100;

function timeTicks(): Promise<number> {
  return new Promise((resolve) => {
    const started = process.cpuUsage();
    let calls = 0;
    const tick = (): void => {
      calls += 1;
      if (calls === CALLS) resolve(nanosecondsSince(started) / CALLS);
      else if (calls % IN_A_ROW === 0) setImmediate(tick);
      else process.nextTick(tick);
    };
    tick();
  });
}

/** Other programs of a busy machine do not count. */
function nanosecondsSince(started: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(started);
  return 1000 * (user + system);
}

async function bestOf(times: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times; time += 1) best = Math.min(best, await timeTicks());
  return best;
}

keepTickShape();
await sleep(10);
const before = await bestOf(15);
for (let time = 0; time < 3; time += 1) {
  await sleep(20);
  await new Promise<void>((resolve) => {
    setTimeout(() => {
      globalThis.gc?.();
      resolve();
    }, 10);
  });
  await sleep(10);
  await bestOf(2);
}
process.stdout.write(JSON.stringify([before, await bestOf(5)]));
