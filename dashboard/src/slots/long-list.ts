/** A long list that is drawn in steps, and only where it is visible, so that its first entries are usable at once. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { afterNextFrame } from '../io/next-frame.ts';

/** So many take less than 50 ms on a slow device, which keeps input responsive. Smaller steps cost more layouts. */
const STEP = 64;

/** How many of `total` entries to draw now: `first` at once, and a step more after each frame. */
export function useGrowing(total: number, first: number): number {
  const [more, setMore] = useState(0);
  const shown = first + more;
  useEffect(() => {
    if (shown >= total) return;
    let isGone = false;
    afterNextFrame(() => {
      if (!isGone) setMore(more + STEP);
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
