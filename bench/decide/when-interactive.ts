/** When a page that is being opened can be used without a delay. Pure. */

export interface LongTask {
  /** Milliseconds since the page was asked for. */
  readonly startMs: number;
  readonly durationMs: number;
}

/** Shorter than the five seconds of "Time to Interactive", which waits for networks. https://developer.mozilla.org/docs/Glossary/Time_to_interactive */
const QUIET_MS = 1000;

/** Milliseconds since the page was asked for. `shownMs`: when the first controls were drawn. `tasks`: those of 50 ms and more, as browsers report them, the earliest first. */
export function whenInteractive(shownMs: number, tasks: readonly LongTask[]): number {
  let free = shownMs;
  for (const { startMs, durationMs } of tasks) {
    if (startMs - free >= QUIET_MS) break;
    free = Math.max(free, startMs + durationMs);
  }
  return free;
}
