/** The loop of a reflector: when to list, when to watch, and how long to wait after a failure. */
import type { Clock } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/words/failure.ts';
import { pause } from '../../platform/pause.ts';
import { expiredDelayMs, failuresAfter, relistDelayMs, retryDelayMs, rewatchDelayMs } from './decide/watch-delay.ts';
import type { ListDue, WatchOutcome } from './read-watch.ts';

export interface ListWatchLoop {
  list(signal: AbortSignal): Promise<Result<void>>;
  /** Watches until it is time for the next list, or until the watch ends. */
  watch(due: ListDue, signal: AbortSignal): Promise<WatchOutcome>;
  onFailure(failure: Failure): void;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Interval of the lists while the watches send bookmarks. */
  readonly relistMs: number;
}

/** Interval of the lists while nothing shows that a silent watch is alive. */
const UNPROVEN_RELIST_MS = 600_000;
const NOW: ListDue = { bookmarked: Number.NEGATIVE_INFINITY, otherwise: Number.NEGATIVE_INFINITY };

/** Runs until the signal aborts. Never sends requests in a hot loop: the delay grows with each failure in a row. */
export async function runListWatchLoop({ list, watch, onFailure, ...options }: ListWatchLoop, signal: AbortSignal): Promise<void> {
  const { clock, random, relistMs } = options;
  let failures = 0;
  let due = NOW;
  const waitAfter = async (failure: Failure, delayMs: number): Promise<void> => {
    const untilMs = failure.until === undefined ? 0 : failure.until - clock.now();
    await pause(clock, Math.max(untilMs, delayMs), signal);
  };
  while (!signal.aborted) {
    if (clock.now() >= due.otherwise) {
      const answer = await list(signal);
      if (!answer.ok) {
        failures += 1;
        if (!signal.aborted) onFailure(answer.failure);
        await waitAfter(answer.failure, retryDelayMs(failures, random()));
        continue;
      }
      due = nextLists(clock.now(), relistMs, random());
    }
    const end = await watch(due, signal);
    if (signal.aborted) return;
    if (end.kind === 'relist') {
      due = NOW;
    } else if (end.kind === 'refused') {
      const isExpired = end.failure.reason === 'Expired';
      if (isExpired) due = NOW;
      else onFailure(end.failure);
      failures += 1;
      // The first expired version is normal after a long outage.
      await waitAfter(end.failure, isExpired ? expiredDelayMs(failures - 1, random()) : retryDelayMs(failures, random()));
    } else {
      const isFirst = failures === 0;
      failures = failuresAfter(failures, end);
      if (end.kind === 'lost') due = NOW;
      else if (end.bookmarked) due = { ...due, otherwise: nextLists(clock.now(), relistMs, random()).otherwise };
      const delayMs = end.kind === 'lost' ? expiredDelayMs(isFirst ? 0 : failures, random()) : rewatchDelayMs(failures, end, random());
      await pause(clock, delayMs, signal);
    }
  }
}

function nextLists(now: number, relistMs: number, random: number): ListDue {
  return {
    bookmarked: now + relistDelayMs(relistMs, random),
    otherwise: now + relistDelayMs(Math.min(relistMs, UNPROVEN_RELIST_MS), random),
  };
}
