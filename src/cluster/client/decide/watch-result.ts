/** How a watch ended, in one word, and what that makes of the next list; for metrics. Pure. */
import type { ListCause, WatchResult } from '../client-observer.ts';
import type { WatchOutcome } from '../read-watch.ts';

export function watchResult(outcome: WatchOutcome): WatchResult {
  switch (outcome.kind) {
    case 'refused':
      return outcome.failure.reason === 'Expired' ? 'expired' : 'refused';
    case 'ended':
      return outcome.orderly ? 'ended' : 'broken';
    case 'lost':
    case 'relist':
      return outcome.kind;
    default:
      return outcome satisfies never;
  }
}

/** Why the next list is read if one follows a watch with this result. */
export function causeAfter(result: WatchResult): ListCause {
  return result === 'lost' || result === 'expired' ? result : 'due';
}
