import { expect, test } from '@jest/globals';
import { followLeader } from '../../../src/cluster/leadership/decide/follow-leader.ts';
import { rememberFollowing } from '../../../src/cluster/leadership/ready-leadership.ts';
import { EMPTY_BOARD, type BoardSlot, type BoardView } from '../../../src/reconciler/board.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import { boardWith } from '../../api/metrics/metrics-fixture.ts';

const COUNT = 50;
const names = Array.from({ length: COUNT }, (_, index) => SlotName.parse(`s${index}`));

function createScene() {
  const [one] = boardWith('ready').slots.values();
  if (one === undefined) throw new Error('The board has no slot');
  const slotOf = (name: SlotName, part: Partial<BoardSlot> = {}): BoardSlot => ({ ...one, name, status: { ...one.status, name }, ...part });
  const slots = new Map(names.map((name) => [name, slotOf(name)]));
  const statuses = new Map<SlotName, SlotStatus>(names.map((name) => [name, { ...one.status, name, restarts: 7 }]));
  const view = (version: number): BoardView => ({ ...EMPTY_BOARD, version, slots: new Map(slots) });
  return { slotOf, slots, statuses, view };
}

test('a pass in which nothing changed makes nothing again, and a change makes one slot again', () => {
  const { slotOf, slots, statuses, view } = createScene();
  const follow = rememberFollowing();
  const madeAgain = (before: BoardView, after: BoardView) => names.filter((name) => before.slots.get(name) !== after.slots.get(name));
  const first = follow(view(1), statuses);
  const second = follow(view(2), new Map(statuses));
  expect([second.version, madeAgain(first, second)]).toEqual([2, []]);
  const [edited, restarted, gone] = names;
  if (edited === undefined || restarted === undefined || gone === undefined) throw new Error('There are too few slots');
  slots.set(edited, slotOf(edited, { admission: { kind: 'open' } }));
  const third = follow(view(3), statuses);
  expect(madeAgain(second, third)).toEqual([edited]);
  const status = statuses.get(restarted);
  if (status !== undefined) statuses.set(restarted, { ...status, restarts: 8 });
  const fourth = follow(view(4), statuses);
  expect([madeAgain(third, fourth), fourth.slots.get(restarted)?.status.restarts]).toEqual([[restarted], 8]);
  // The leader has not seen the newest edit yet.
  statuses.delete(gone);
  const fifth = follow(view(5), statuses);
  expect(fifth.slots.get(gone)).toBe(slots.get(gone));
  expect(fifth).toEqual(followLeader(view(5), statuses));
});
