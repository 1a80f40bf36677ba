/** The loop of a reflector: when to list, when to watch, and how long to wait after a failure. */
import type { Clock } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/failure.ts';
import { pause } from '../../platform/pause.ts';
import { failuresAfter, relistDelayMs, retryDelayMs, rewatchDelayMs } from './decide/watch-delay.ts';
import type { WatchOutcome } from './read-watch.ts';

export interface ListWatchLoop {
  list(signal: AbortSignal): Promise<Result<void>>;
  /** Watches until it is time for the next list (monotonic milliseconds), or until the watch ends. */
  watch(relistAt: number, signal: AbortSignal): Promise<WatchOutcome>;
  onFailure(failure: Failure): void;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly relistMs: number;
}

const NOW = Number.NEGATIVE_INFINITY;

/** Runs until the signal aborts. Never sends requests in a hot loop: the delay grows with each failure in a row. */
export async function runListWatchLoop({ list, watch, onFailure, ...options }: ListWatchLoop, signal: AbortSignal): Promise<void> {
  const { clock, random, relistMs } = options;
  let failures = 0;
  let relistAt = NOW;
  const backOff = async (failure: Failure, failuresInRow: number): Promise<void> => {
    const untilMs = failure.until === undefined ? 0 : failure.until - clock.now();
    await pause(clock, Math.max(untilMs, retryDelayMs(failuresInRow, random())), signal);
  };
  while (!signal.aborted) {
    if (clock.now() >= relistAt) {
      const answer = await list(signal);
      if (!answer.ok) {
        failures += 1;
        if (!signal.aborted) onFailure(answer.failure);
        await backOff(answer.failure, failures);
        continue;
      }
      relistAt = clock.now() + relistDelayMs(relistMs, random());
    }
    const end = await watch(relistAt, signal);
    if (signal.aborted) return;
    if (end.kind === 'relist') {
      relistAt = NOW;
    } else if (end.kind === 'refused') {
      const isExpired = end.failure.reason === 'Expired';
      if (isExpired) relistAt = NOW;
      else onFailure(end.failure);
      failures += 1;
      // The first expired version is normal after a long outage.
      await backOff(end.failure, isExpired ? failures - 1 : failures);
    } else {
      const isFirst = failures === 0;
      failures = failuresAfter(failures, end);
      if (end.kind === 'lost') relistAt = NOW;
      const delayMs = end.kind === 'lost' ? retryDelayMs(isFirst ? 0 : failures, random()) : rewatchDelayMs(failures, end, random());
      await pause(clock, delayMs, signal);
    }
  }
}
