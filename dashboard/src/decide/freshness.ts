/** Whether what the page shows is what the service says now. Pure. */

export type Freshness = 'connecting' | 'live' | 'stale';

/** The service sends a heartbeat every 15 s; after two that did not come, nobody knows what is true. */
export const SILENCE_MS = 35_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/** `attempt` counts from 0. Many pages that lose one service come back spread over time by `random`, from 0 to 1. */
export function retryDelayMs(attempt: number, random: number): number {
  const full = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
  return full * (0.5 + random / 2);
}
