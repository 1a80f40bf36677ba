/** The speed of a download, from how much had arrived when. Pure. */

export interface RateSample {
  /** Milliseconds of a monotonic clock. */
  readonly at: number;
  readonly bytes: number;
}

/** Long enough that one slow second does not change the time left, short enough that a new speed shows soon. */
const WINDOW_MS = 10_000;
/** The speed of a shorter time is mostly that of buffers. */
const LEAST_MS = 500;

/** Adds a sample and drops those that no longer count. */
export function addSample(samples: readonly RateSample[], sample: RateSample): readonly RateSample[] {
  return [...samples.filter(({ at }) => sample.at - at <= WINDOW_MS), sample];
}

/** Undefined if too little time has passed to tell. */
export function bytesPerSecond(samples: readonly RateSample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.at - first.at < LEAST_MS) return undefined;
  return Math.max(0, (1000 * (last.bytes - first.bytes)) / (last.at - first.at));
}
