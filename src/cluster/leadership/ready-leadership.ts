/**
 * A replica that has just acquired the Lease leads only once it has prepared itself. Until then it remains a follower,
 * and nobody leads.
 */
import type { Wake } from '../../reconciler/ports.ts';
import { addWake } from '../../platform/clock.ts';
import type { Leadership } from '../client/ports.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import { followLeader, followSlot } from './decide/follow-leader.ts';

const NOT_READY = AbortSignal.abort();

/** `prepare` is called with each term and must resolve when the term ends. It does not throw. */
export function createReadyLeadership(lease: Leadership, prepare: (term: AbortSignal) => Promise<void>): Leadership {
  const wakes = new Set<Wake>();
  let begun: AbortSignal | undefined;
  let ready: AbortSignal | undefined;

  const wakeAll = (): void => {
    for (const wake of wakes) wake();
  };

  async function begin(term: AbortSignal): Promise<void> {
    begun = term;
    await prepare(term);
    if (term.aborted || begun !== term) return;
    ready = term;
    wakeAll();
  }

  function changed(): void {
    const term = lease.term();
    if (!term.aborted && term !== begun) void begin(term);
    wakeAll();
  }

  const term = (): AbortSignal => {
    const present = lease.term();
    return present === ready ? present : NOT_READY;
  };

  return {
    leads: () => lease.leads() && !term().aborted,
    term,
    holder: lease.holder,
    changes: (wake, signal) => addWake(wakes, wake, signal),
    async start(signal) {
      const ended = new AbortController();
      lease.changes(changed, ended.signal);
      await lease.start(signal);
      ended.abort();
    },
  };
}

/** Nearly all of a board is made from the same objects as the last one. */
export function rememberFollowing(): (view: BoardView, statuses: ReadonlyMap<SlotName, SlotStatus>) => BoardView {
  const followed = new WeakMap<BoardSlot, { readonly published: SlotStatus; readonly slot: BoardSlot }>();
  const followOnce: typeof followSlot = (slot, published) => {
    const before = followed.get(slot);
    if (before?.published === published) return before.slot;
    const next = followSlot(slot, published);
    followed.set(slot, { published, slot: next });
    return next;
  };
  return (view, statuses) => followLeader(view, statuses, followOnce);
}
