/** Asks for a pass when `idle` or `serving` has changed, after a while: under load that happens very often. */
import type { Board } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { addWake } from '../../platform/clock.ts';
import type { Wake } from '../../reconciler/ports.ts';
import type { SlotState } from '../../schema/status/slot-status.ts';

interface ActivityWatchDeps {
  readonly board: Pick<Board, 'current'>;
  readonly inFlight: (slot: SlotName) => number;
  /** Requests a pass within this many milliseconds. */
  readonly wakeWithin: (ms: number) => void;
}

/** `shown`: by the board. `wait`: requests of a serving slot may be so short that none is in flight; judge again. */
export type ActivityVerdict = 'shown' | 'wait' | 'news';

interface SlotActivity {
  readonly state: SlotState | undefined;
  readonly inFlight: number;
  /** A workload got its first request or lost its last one since the activity was judged before. */
  readonly hasChanged: boolean;
}

const SETTLES_MS = 200;
const WITHIN_MS = 50;

/** Returns a function to call when a workload of a slot gets its first or loses its last request. */
export function createActivityWatch({ board, inFlight, wakeWithin }: ActivityWatchDeps): (slot: SlotName) => void {
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

/** Decides whether the board needs a pass to show what a slot is doing. Pure. */
export function judgeActivity({ state, inFlight, hasChanged }: SlotActivity): ActivityVerdict {
  if (state === (inFlight > 0 ? 'serving' : 'idle')) return 'shown';
  return state === 'serving' && hasChanged ? 'wait' : 'news';
}

/** Wakes the reconciler, but not as often as requests come: only the soonest wake since its last look counts. */
export function createSoonestWake() {
  const wakes = new Set<Wake>();
  let requestedMs = Number.POSITIVE_INFINITY;
  return {
    wakeWithin(ms: number) {
      if (ms >= requestedMs || wakes.size === 0) return;
      requestedMs = ms;
      for (const wake of wakes) wake(ms);
    },
    /** Call when the reconciler looks: from then on, any wake is news. */
    looked: () => void (requestedMs = Number.POSITIVE_INFINITY),
    changes: (wake: Wake, signal: AbortSignal) => addWake(wakes, wake, signal),
  };
}
