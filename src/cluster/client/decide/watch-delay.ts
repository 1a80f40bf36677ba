/** When a copy is read again after something went wrong, and how long a watch may last. Pure: random numbers in [0, 1) are arguments. */

const FIRST_DELAY_MS = 500;
/** Half of it on average, so that a server that was away for long is found again soon. */
const LONGEST_DELAY_MS = 15_000;
/** A server that restarts drops all watches of all clients at the same moment. */
const AFTER_BREAK_MS = 1000;
/** A watch that lived this long was a good one: what failed before it is forgotten. */
const GOOD_WATCH_MS = 10_000;

const SHORTEST_WATCH_S = 300;
const LONGEST_WATCH_S = 600;

export interface WatchEnd {
  /** Ended by the server in good order. */
  readonly orderly: boolean;
  readonly livedMs: number;
}

/** Failures in a row after this end: each watch that did not live long counts as one, however it ended. */
export function failuresAfter(failures: number, { livedMs }: WatchEnd): number {
  return livedMs >= GOOD_WATCH_MS ? 0 : failures + 1;
}

/** Full jitter, so that many clients that fail together do not come back together. */
export function retryDelayMs(failures: number, random: number): number {
  if (failures <= 0) return 0;
  return random * Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);
}

/** How long to wait before the next watch. A watch that ended in good order was spread by its own random length. */
export function rewatchDelayMs(failures: number, end: WatchEnd, random: number): number {
  if (failures > 0) return retryDelayMs(failures, random);
  return end.orderly ? 0 : random * AFTER_BREAK_MS;
}

export function watchSeconds(random: number): number {
  return Math.round(SHORTEST_WATCH_S + random * (LONGEST_WATCH_S - SHORTEST_WATCH_S));
}

/** The list that heals a silent watch: within a tenth of its interval, so that several copies do not list at once for ever. */
export function relistDelayMs(relistMs: number, random: number): number {
  return relistMs * (0.9 + 0.2 * random);
}
