/** Schedules work relative to the browser's frames. */

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

/** Calls `work` once, after the next frame. */
export function afterNextFrame(work: () => void): void {
  beforeNextFrame(() => setTimeout(work));
}
