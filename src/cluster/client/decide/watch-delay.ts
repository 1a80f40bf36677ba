/** Delays before the next list or watch, and the duration of a watch. Pure: `random` is in [0, 1). */

const FIRST_DELAY_MS = 500;
/** Half of it on average, so that we reconnect soon after a long outage of the server. */
const LONGEST_DELAY_MS = 15_000;
/** Spreads the clients after a server restart, which breaks all watches at the same moment. */
const AFTER_BREAK_MS = 1000;
/** The same for lists, which cost the server more, when it has lost the versions of all clients at the same moment. */
const AFTER_EXPIRY_MS = 3000;
/** A watch that lasted this long resets the failure count. */
const GOOD_WATCH_MS = 10_000;
const SHORTEST_WATCH_S = 300;
const LONGEST_WATCH_S = 600;

interface WatchEnd {
  /** The server ended the watch properly. */
  readonly orderly: boolean;
  readonly livedMs: number;
}

/** Returns the number of consecutive failures. A watch that did not last long counts as a failure, however it ended. */
export const failuresAfter = (failures: number, { livedMs }: WatchEnd): number => (livedMs >= GOOD_WATCH_MS ? 0 : failures + 1);

/** Full jitter, so that many clients that fail together do not retry together. */
export function retryDelayMs(failures: number, random: number): number {
  return failures <= 0 ? 0 : random * Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);
}

/** After a proper end there is no delay: the random duration of the watch has spread the clients already. */
export function rewatchDelayMs(failures: number, end: WatchEnd, random: number): number {
  if (failures > 0) return retryDelayMs(failures, random);
  return end.orderly ? 0 : random * AFTER_BREAK_MS;
}

/** Delay before the list after an expired version. `failures`: consecutive ones before this one. */
export function expiredDelayMs(failures: number, random: number): number {
  return failures > 0 ? retryDelayMs(failures, random) : random * AFTER_EXPIRY_MS;
}

export const watchSeconds = (random: number): number => Math.round(SHORTEST_WATCH_S + random * (LONGEST_WATCH_S - SHORTEST_WATCH_S));

/** Varies by a tenth, so that several copies do not always list at the same time. */
export const relistDelayMs = (relistMs: number, random: number): number => relistMs * (0.9 + 0.2 * random);
