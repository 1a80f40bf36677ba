/** Waits for a state of the world, and says which one did not come. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function eventually(what: string, holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`This did not come true within ${withinMs} ms: ${what}`);
    await sleep(10);
  }
}
