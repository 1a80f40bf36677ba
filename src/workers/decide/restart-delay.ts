/** When a worker that has ended is started again. Pure. */

const FIRST_MS = 100;
/** Starting takes a third of a second of CPU, which is little in this time. */
const LONGEST_MS = 5000;
/** After so long, an earlier end no longer counts. */
const STABLE_MS = 10_000;

/** `earlier`: how often it had ended before, each time soon. Returns the same number for the next call. */
export function restartDelay(earlier: number, livedMs: number): { readonly delayMs: number; readonly earlier: number } {
  const before = livedMs >= STABLE_MS ? 0 : earlier;
  return { delayMs: Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(before, 10)), earlier: before + 1 };
}
