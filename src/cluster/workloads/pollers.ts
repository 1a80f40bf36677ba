/** Looks at something of the cluster that cannot be watched, again and again. */
import { sleep } from '../../platform/pause.ts';
import type { Wake } from '../../reconciler/ports.ts';

export interface PollerOptions<Value> {
  readonly everyMs: number;
  /** Returns the value before, the same object, if nothing has changed. */
  readonly look: (before: Value | undefined) => Promise<Value | undefined>;
}

export function createPoller<Value>({ everyMs, look }: PollerOptions<Value>) {
  let value: Value | undefined;

  async function lookUntilAborted(wake: Wake, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(everyMs, signal);
      if (signal.aborted) return;
      const found = await look(value);
      if (found === value) continue;
      value = found;
      wake();
    }
  }

  return {
    /** Returns what the last look found; the same object as long as it is the same. */
    current: (): Value | undefined => value,
    /** Looks until the signal aborts, and wakes when the value changes. */
    follow: (wake: Wake, signal: AbortSignal): void => void lookUntilAborted(wake, signal),
  };
}
