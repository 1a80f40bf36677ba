/**
 * Notices when the board should show something else because a workload got its first request or lost its last one. That only changes `idle` and `serving`, and under load it
 * happens hundreds of times per second, so it is looked at after a while, and a pass follows only if the board shows something else by then.
 */
import type { Board } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { judgeActivity } from '../decide/judge-activity.ts';

export interface ActivityWatchDeps {
  readonly board: Pick<Board, 'current'>;
  /** Number of requests in flight on the workloads of a slot. */
  readonly inFlight: (slot: SlotName) => number;
  /** Asks for a pass within so many milliseconds. */
  readonly wakeWithin: (ms: number) => void;
}

const SETTLES_MS = 200;
const WITHIN_MS = 50;

/** Returns what is to be called when a workload of a slot gets its first or loses its last request. */
export function createActivityWatch({ board, inFlight, wakeWithin }: ActivityWatchDeps): (slot: SlotName) => void {
  /** The slots to look at when the timer fires, and whether their activity has changed since it was started. */
  const changes = new Map<SlotName, boolean>();
  let settling: NodeJS.Timeout | undefined;

  function judgeChanges(): void {
    settling = undefined;
    const { slots } = board.current();
    let hasNews = false;
    for (const [slot, hasChanged] of changes) {
      const verdict = judgeActivity({ state: slots.get(slot)?.status.state, inFlight: inFlight(slot), hasChanged });
      if (verdict === 'news') hasNews = true;
      if (verdict === 'wait') changes.set(slot, false);
      else changes.delete(slot);
    }
    if (changes.size > 0) settling = setTimeout(judgeChanges, SETTLES_MS).unref();
    if (hasNews) wakeWithin(WITHIN_MS);
  }

  return (slot) => {
    if (changes.get(slot) !== true) changes.set(slot, true);
    settling ??= setTimeout(judgeChanges, SETTLES_MS).unref();
  };
}
