/** What is known of a reflector's copy besides its objects: how old it may be, and how its lists and watches went. Reports to the observer; decides nothing. */
import type { Clock } from '../../reconciler/ports.ts';
import { afterReceived, afterWatchEnded, afterWatchOpened, confirmed, copyAgeMs, type CopyAge } from './decide/copy-age.ts';
import { causeAfter, watchResult } from './decide/watch-result.ts';
import type { KubeObserver, ListCause } from './kube-observer.ts';
import type { WatchOutcome } from './read-watch.ts';

export type CopyObserver = Pick<KubeObserver, 'copyListed' | 'copyWatchEnded'>;

export function createCopyRecord(resource: string, clock: Clock, observer: CopyObserver) {
  /** Undefined while the copy is not kept up to date. */
  let age: CopyAge | undefined;
  let cause: ListCause = 'start';
  return {
    started(signal: AbortSignal): void {
      age = confirmed(clock.now());
      signal.addEventListener('abort', () => void (age = undefined), { once: true });
    },
    listed(): void {
      if (age !== undefined) age = confirmed(clock.now());
      observer.copyListed({ resource, cause });
      cause = 'periodic';
    },
    watchOpened: (): void => void (age &&= afterWatchOpened(age, clock.now())),
    received: (): void => void (age &&= afterReceived(age, clock.now())),
    watchEnded(outcome: WatchOutcome): void {
      const result = watchResult(outcome);
      age &&= afterWatchEnded(age, result === 'ended', clock.now());
      observer.copyWatchEnded({ resource, result });
      // A watch that is refused again and again does not hide why the list became necessary.
      if (result !== 'refused') cause = causeAfter(result);
    },
    /** Milliseconds; undefined while the copy is not kept up to date. */
    ageMs: (): number | undefined => (age === undefined ? undefined : copyAgeMs(age, clock.now())),
  };
}
