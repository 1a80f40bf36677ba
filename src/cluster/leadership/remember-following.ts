/**
 * Remembers what a follower shows of each slot. Every pass publishes a board, and with thousands of slots nearly all of it is made from the same objects as the last one. Keeps
 * nothing of slots that are gone.
 */
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import { followLeader, followSlot } from './decide/follow-leader.ts';

/** Returns `followLeader()` with the same object for a slot as long as its slot and its status are the same objects. */
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
