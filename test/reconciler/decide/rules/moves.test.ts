import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { mayMove, MOVES } from '../../../../src/reconciler/decide/rules/moves.ts';
import { SLOT_STATES, type SlotState } from '../../../../src/schema/status/slot-status.ts';

const state = fc.constantFrom(...SLOT_STATES);
const ANSWERING: readonly SlotState[] = ['ready', 'serving', 'idle'];

describe('the table of moves', () => {
  test('has a cell for every pair of states', () => {
    expect(Object.keys(MOVES).sort()).toEqual([...SLOT_STATES].sort());
    for (const row of Object.values(MOVES)) expect(Object.keys(row).sort()).toEqual([...SLOT_STATES].sort());
  });

  test('lets every state stay, and be reached from another one', () => {
    for (const from of SLOT_STATES) {
      expect(mayMove(from, from)).toBe(true);
      expect(reachable(from)).toEqual(new Set(SLOT_STATES));
    }
  });

  test('passes through warming on every path from offline to serving', () => {
    fc.assert(
      fc.property(fc.array(state, { maxLength: 30 }), (candidates) => {
        let now: SlotState = 'offline';
        let warmed = false;
        for (const candidate of candidates) {
          if (!mayMove(now, candidate)) continue;
          now = candidate;
          // Unloading can be reverted, and a slot that unloads was warming before, perhaps in an earlier run of the controller.
          warmed ||= now === 'warming' || now === 'unloading';
          if (ANSWERING.includes(now) && !warmed) return false;
        }
        return true;
      }),
    );
  });
});

function reachable(from: SlotState): ReadonlySet<SlotState> {
  const seen = new Set<SlotState>([from]);
  for (const each of seen) for (const to of SLOT_STATES) if (mayMove(each, to)) seen.add(to);
  return seen;
}
