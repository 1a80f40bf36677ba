/** A long list that is drawn in steps, and only where it is visible, so that its first entries are usable at once. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { afterNextFrame } from '../io/next-frame.ts';

/** Drawing so many takes less than a frame on a slow device, so that input is handled in between. */
const STEP = 32;

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

/** Returns a function that ends the observation. */
export type WatchNear = (element: Element, onNear: (isNear: boolean) => void) => () => void;

/** About a row in each direction, so that scrolling and keyboard navigation find the next entries drawn. */
const MARGIN = '320px 0px';

export function useNear(): WatchNear {
  const { observer, watch } = useMemo(createWatcher, []);
  useEffect(() => () => observer.disconnect(), []);
  return watch;
}

function createWatcher(): { readonly observer: IntersectionObserver; readonly watch: WatchNear } {
  const listeners = new Map<Element, (isNear: boolean) => void>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) listeners.get(target)?.(isIntersecting);
    },
    { rootMargin: MARGIN },
  );
  return {
    observer,
    watch(element, onNear) {
      listeners.set(element, onNear);
      observer.observe(element);
      return () => {
        listeners.delete(element);
        observer.unobserve(element);
      };
    },
  };
}
