/** A long list that is drawn piece by piece, so that its begin can be used before its end is there. */
import { useEffect, useState } from 'preact/hooks';
import { afterNextFrame } from '../io/next-frame.ts';

const STEP = 250;

/** How many of `total` entries to draw now: `first` at once, and a step more after each frame. */
export function useGrowing(total: number, first: number): number {
  const [shown, setShown] = useState(first);
  useEffect(() => {
    if (shown >= total) return;
    let isGone = false;
    afterNextFrame(() => {
      if (!isGone) setShown(shown + STEP);
    });
    return () => {
      isGone = true;
    };
  }, [shown, total > shown]);
  return shown;
}
