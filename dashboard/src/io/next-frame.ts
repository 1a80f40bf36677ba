/** Work that belongs into a frame of the browser. */

/** A page that nobody sees has no frames: its work is done after this time. */
const LONGEST_FRAME_MS = 250;

/** Calls `work` once: before the browser draws next, or a moment later if it does not draw. */
export function beforeNextFrame(work: () => void): void {
  let isDone = false;
  const once = (): void => {
    if (!isDone) work();
    isDone = true;
  };
  requestAnimationFrame(once);
  setTimeout(once, LONGEST_FRAME_MS);
}

/** Calls `work` once, after the browser has drawn what is there now. */
export function afterNextFrame(work: () => void): void {
  beforeNextFrame(() => setTimeout(work));
}
