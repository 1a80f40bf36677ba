/** Notices which elements of a long list are near to what is seen. */
import { useEffect, useMemo } from 'preact/hooks';

/** Returns what ends the watching. */
export type WatchNear = (element: Element, onNear: (isNear: boolean) => void) => () => void;

/** About a row in each direction, so that scrolling and the keyboard find what comes next. */
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
