/** How often a page that many events arrive at is drawn. Pure. */

/** Up to so many events of one drawing, each drawing follows in the next frame. */
const FEW_EVENTS = 8;
/** More than ten changes a second cannot be read, and the frames in between stay free for scrolling and typing. */
const PAUSE_MS = 100;

/** Milliseconds from the last drawing, which had so many events, to the next one. */
export function drawPauseMs(events: number): number {
  return events > FEW_EVENTS ? PAUSE_MS : 0;
}

/** Size of a card with the space beside it, in CSS pixels, when it is smallest. */
const CARD = { width: 350, height: 290 };

/** How many cards a window of this size shows at most. */
export function cardsInView({ width, height }: { readonly width: number; readonly height: number }): number {
  return Math.max(1, Math.floor(width / CARD.width)) * (Math.ceil(height / CARD.height) || 1);
}
