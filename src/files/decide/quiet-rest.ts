/** Whether a file may still be in the middle of being written. Pure. */

/** Times of files have fractions of a millisecond, the clock has none: what has just been written may seem to be newer than now. */
const CLOCK_STEP_MS = 1;

/**
 * Returns how many milliseconds are left of the quiet period of a file that was written at `writtenAt` (Unix milliseconds); 0 or less if it may be used. A time in the future
 * means that a clock is wrong, not that the file is being written.
 */
export function quietRestMs(writtenAt: number, now: number, quietPeriodMs: number): number {
  const ageMs = now - writtenAt;
  return ageMs <= -CLOCK_STEP_MS ? 0 : quietPeriodMs - Math.max(0, ageMs);
}
