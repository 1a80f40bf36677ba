/** What is known of a reflector's copy besides its objects: how old it may be, and how its lists and watches went. Reports to the observer; decides nothing. */
import type { Clock } from '../../reconciler/ports.ts';
import { afterReceived, afterWatchEnded, afterWatchOpened, confirmed, copyAgeMs, type CopyAge } from './decide/copy-age.ts';
import { causeAfter, watchResult } from './decide/watch-result.ts';
import type { KubeObserver, ListCause } from './client-observer.ts';
import type { WatchOutcome } from './read-watch.ts';

export type CopyObserver = Pick<KubeObserver, 'copyStarted' | 'copyListed' | 'copyWatchEnded'>;

export function createCopyRecord(resource: string, clock: Clock, observer: CopyObserver) {
  let age: CopyAge = confirmed(clock.now());
  let cause: ListCause = 'start';
  return {
    started(signal: AbortSignal): void {
      age = confirmed(clock.now());
      observer.copyStarted({ resource, ageMs: () => copyAgeMs(age, clock.now()) }, signal);
    },
    listed(): void {
      age = confirmed(clock.now());
      observer.copyListed({ resource, cause });
      cause = 'due';
    },
    watchOpened: (): void => void (age = afterWatchOpened(age, clock.now())),
    /** An event or a bookmark. */
    received: (): void => void (age = afterReceived(age, clock.now())),
    watchEnded(outcome: WatchOutcome): void {
      const result = watchResult(outcome);
      age = afterWatchEnded(age, result === 'ended', clock.now());
      observer.copyWatchEnded({ resource, result });
      // A watch that is refused does not change why the next list becomes necessary.
      if (result !== 'refused') cause = causeAfter(result);
    },
  };
}
