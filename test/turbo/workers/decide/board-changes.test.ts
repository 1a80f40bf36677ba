import { describe, expect, test } from '@jest/globals';
import { applyBoardChange, compareBoards, NO_BOARD } from '../../../../src/turbo/workers/decide/board-changes.ts';
import type { RoutedSlot, RoutedView } from '../../../../src/reconciler/board.ts';
import { boardView, type SlotSketch } from '../../../gateway/support/board-fixture.ts';

let version = 0;

/** As the reporter publishes it. */
function viewOf(...slots: readonly SlotSketch[]): RoutedView {
  version += 1;
  return boardView(version, slots);
}

const A = { name: 'a', targets: [{ workload: 'wa', port: 1 }] };
const B = { name: 'b', targets: [{ workload: 'wb', port: 2 }] };
const OTHER_A = { name: 'a', targets: [{ workload: 'wa2', port: 3 }] };

/** Without what only people look at, as requests see it. */
function seen({ version: number, slots, names, refused }: RoutedView) {
  const routed = ({ name, capabilities, model, admission, targets, spec }: RoutedSlot) => ({
    name,
    capabilities,
    model,
    admission,
    targets,
    spec,
  });
  return { number, slots: [...slots].map(([name, slot]) => [name, routed(slot)]), names: [...names], refused: [...refused] };
}

describe('compareBoards() and applyBoardChange()', () => {
  test.each<[string, RoutedView, RoutedView]>([
    ['the first board', NO_BOARD, viewOf(A, B)],
    ['the first board, without slots', NO_BOARD, viewOf()],
    ['another target', viewOf(A, B), viewOf(OTHER_A, B)],
    ['a new slot at the end', viewOf(A), viewOf(A, B)],
    ['a new slot at the front', viewOf(B), viewOf(A, B)],
    ['a slot that is gone', viewOf(A, B), viewOf(B)],
    ['another order', viewOf(A, B), viewOf(B, A)],
  ])('make the same board out of the one before: %s', (_, before, after) => {
    const change = compareBoards(before, after);
    expect(change).toBeDefined();
    // What is sent is copied.
    const made = applyBoardChange(before, structuredClone(change ?? { version: 0 }));
    expect(seen(made)).toEqual(seen(after));
  });

  test('send only the slots that have changed, and keep the others as they are', () => {
    const before = viewOf(A, B);
    const after = { ...viewOf(OTHER_A), slots: new Map([...before.slots, ...viewOf(OTHER_A).slots]), names: before.names };
    const change = compareBoards(before, after);
    expect(change?.slots).toMatchObject({ set: [['a', {}]], removed: [] });
    expect(change?.names).toBeUndefined();
    const b = [...before.slots.keys()].find((name) => name === 'b');
    expect(b !== undefined && applyBoardChange(before, change ?? { version: 0 }).slots.get(b)).toBe(b && before.slots.get(b));
  });

  test('send a new slot in front of others alone, with the order of all', () => {
    const change = compareBoards(viewOf(B), viewOf(A, B));
    expect(change?.slots).toMatchObject({ set: [['a', {}]], removed: [], order: ['a', 'b'] });
    expect(compareBoards(viewOf(A), viewOf(A, B))?.slots?.order).toBeUndefined();
  });

  test('send the state of a slot that is waited for, without its progress', () => {
    const before = viewOf({ name: 'a', state: 'pulling' });
    const pulled = (doneBytes: number): RoutedView => ({
      ...before,
      slots: new Map(
        [...before.slots].map(([name, slot]) => [name, { ...slot, status: { state: 'pulling', progress: { what: 'm', doneBytes } } }]),
      ),
    });
    expect(compareBoards(NO_BOARD, pulled(1))?.slots).toMatchObject({ set: [['a', { status: { state: 'pulling' } }]] });
    expect(JSON.stringify(compareBoards(NO_BOARD, pulled(1)))).not.toContain('doneBytes');
    expect(compareBoards(pulled(1), pulled(2))).toBeUndefined();
    const warming = viewOf({ name: 'a', state: 'warming' });
    expect(compareBoards(before, warming)?.slots).toMatchObject({ set: [['a', { status: { state: 'warming' } }]] });
    expect(compareBoards(warming, viewOf(A))?.slots).not.toMatchObject({ set: [['a', { status: expect.anything() }]] });
  });

  test('send nothing where requests would see no difference', () => {
    const before = viewOf(A, B);
    const others = boardView(
      version,
      [A, B].map((sketch) => ({ ...sketch, state: 'serving' })),
    );
    expect([...others.slots.values()]).not.toEqual([...before.slots.values()]);
    expect(compareBoards(before, { ...before, version: before.version + 1, slots: others.slots })).toBeUndefined();
  });
});
