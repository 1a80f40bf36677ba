/** How often the page draws, how much of it, and when it reconnects. Pure. */

/** Up to this many events per drawing, the next drawing follows in the next frame. */
const FEW_EVENTS = 8;
/** Nobody reads more than ten changes a second, and the frames in between stay free for scrolling and typing. */
const PAUSE_MS = 100;

/** Milliseconds from a drawing with this many events to the next one. */
export function drawPauseMs(events: number): number {
  return events > FEW_EVENTS ? PAUSE_MS : 0;
}

/** Smallest size of a card with its margins, in CSS pixels. */
const CARD = { width: 350, height: 290 };
/** Height of what is above the cards, in CSS pixels. */
const ABOVE = 180;

/** Upper bound of the cards that a window of this size shows; at least 1. */
export function cardsInView({ width, height }: { readonly width: number; readonly height: number }): number {
  return Math.max(1, Math.floor(width / CARD.width)) * Math.max(1, Math.ceil((height - ABOVE) / CARD.height));
}

/** Whether the page shows the present state of the service. */
export type Freshness = 'connecting' | 'live' | 'stale';

/** The service sends a heartbeat every 15 s; after two missing ones the connection counts as lost. */
export const SILENCE_MS = 35_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;

/** Back-off with jitter. `attempt` counts from 0; `random` is between 0 and 1. */
export function retryDelayMs(attempt: number, random: number): number {
  const full = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
  return full * (0.5 + random / 2);
}
