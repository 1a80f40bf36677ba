/** Waits until a condition holds; throws with its description when it does not hold in time. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function eventually(what: string, holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`Not true within ${withinMs} ms: ${what}`);
    await sleep(10);
  }
}
