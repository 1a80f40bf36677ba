/** Schedules work relative to the browser's frames and idle times. */

/** A hidden page has no frames, so its work runs after this time. */
const MAX_FRAME_MS = 250;

/** Calls `work` once, before the next frame. */
export function beforeNextFrame(work: () => void): void {
  let isDone = false;
  const once = (): void => {
    if (!isDone) work();
    isDone = true;
  };
  requestAnimationFrame(once);
  setTimeout(once, MAX_FRAME_MS);
}

/** Parts that wait for an idle moment are shown at the latest after this time. */
const MAX_IDLE_MS = 500;

/** Calls `work` once, when the page has nothing else to do. Safari has no idle callbacks. */
export function whenIdle(work: () => void): void {
  if ('requestIdleCallback' in window) requestIdleCallback(work, { timeout: MAX_IDLE_MS });
  else afterNextFrame(work);
}

/** Calls `work` once, after the next frame. */
export function afterNextFrame(work: () => void): void {
  beforeNextFrame(() => setTimeout(work));
}
