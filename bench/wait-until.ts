/** Waits for a condition by checking it repeatedly. */
import { setTimeout as pause } from 'node:timers/promises';

export interface WaitOptions {
  readonly withinMs: number;
  readonly everyMs: number;
  /** The message of the error that is thrown when the time is over. */
  readonly failure: () => string | Promise<string>;
}

/** Resolves with the first result of `check` that is not undefined or false. */
export async function waitUntil<T>(
  check: () => T | undefined | false | Promise<T | undefined | false>,
  { withinMs, everyMs, failure }: WaitOptions,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const result = await check();
    if (result !== undefined && result !== false) return result;
    if (performance.now() > deadline) throw new Error(await failure());
    await pause(everyMs);
  }
}
