import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Hold } from '../../../src/gateway/request-events.ts';
import { createHolds, type Holder, type Holds } from '../../../src/gateway/traffic/hold.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import { boardSlot, publish, slotName, workloadId } from '../support/board-fixture.ts';

const HOLDER: Holder = { onStopping: () => undefined };
const TARGETS = ['a', 'b', 'c'].map((workload, index) => ({ workload, port: index + 1 }));
const SLOT = boardSlot({ name: 'primary', targets: TARGETS });

interface World {
  readonly holds: Holds;
  readonly board: Board;
  readonly draining: boolean[];
  time: number;
}

function world(): World {
  const board = createBoard();
  const draining: boolean[] = [];
  const made: World = {
    holds: createHolds({ now: () => made.time, board, onActivity: (change) => void draining.push(change.draining) }),
    board,
    draining,
    time: 1,
  };
  return made;
}

function acquire(holds: Holds, holder = HOLDER): Hold {
  const hold = holds.acquire(SLOT, holder);
  if (hold === undefined) throw new Error('no target');
  return hold;
}

describe('createHolds()', () => {
  test('spreads requests over the targets and counts each hold until its first release', () => {
    const action = fc.record({ kind: fc.constantFrom('acquire', 'release', 'release-again'), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const { holds } = world();
        const held: Hold[] = [];
        const gone: Hold[] = [];
        for (const { kind, which } of actions) {
          if (kind === 'acquire') {
            const before = holds.activity();
            const hold = acquire(holds);
            const load = (id: string): number => before.get(workloadId(id))?.inFlight ?? 0;
            expect(load(hold.workload)).toBe(Math.min(...TARGETS.map((target) => load(target.workload))));
            held.push(hold);
          } else if (kind === 'release' && held.length > 0) {
            const [hold] = held.splice(which % held.length, 1);
            hold?.release();
            if (hold !== undefined) gone.push(hold);
          } else if (gone.length > 0) gone[which % gone.length]?.release();
          const counted = [...holds.activity().values()].reduce((sum, entry) => sum + entry.inFlight, 0);
          expect(counted).toBe(held.length);
          expect(holds.inFlight(slotName('primary'))).toBe(held.length);
        }
      }),
    );
  });

  test('avoids the target that has just failed, unless there is no other', () => {
    const { holds } = world();
    const avoided = { workload: workloadId('a'), endpoint: { host: '127.0.0.1', port: 1 } };
    for (let index = 0; index < 10; index += 1) expect(holds.acquire(SLOT, HOLDER, [avoided])?.workload).not.toBe('a');
    const only = boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) });
    expect(holds.acquire(only, HOLDER, [avoided])?.workload).toBe('a');
  });

  test('returns undefined for a slot without targets', () => {
    expect(world().holds.acquire(boardSlot({ name: 'primary' }), HOLDER)).toBeUndefined();
  });

  test('remembers the last use of a workload: the start of a running request, or the end of the last one', () => {
    const made = world();
    const hold = acquire(made.holds);
    expect(made.holds.activity().get(hold.workload)).toEqual({ inFlight: 1, ended: 0, failed: 0, lastUsedAt: 1 });
    made.time = 50;
    hold.release();
    expect(made.holds.activity().get(hold.workload)).toEqual({ inFlight: 0, ended: 1, failed: 0, lastUsedAt: 50 });
    const other = acquire(made.holds);
    other.release(true);
    expect(made.holds.activity().get(other.workload)).toMatchObject({ ended: 1, failed: 1 });
  });

  test('aborts each holder of one workload once, and the holders release their holds', () => {
    const { holds } = world();
    const aborted: string[] = [];
    for (let index = 0; index < 9; index += 1) {
      const hold: Hold = acquire(holds, {
        onStopping() {
          aborted.push(hold.workload);
          hold.release();
        },
      });
    }
    holds.abort(workloadId('b'));
    expect(aborted).toEqual(['b', 'b', 'b']);
    expect(holds.activity().get(workloadId('b'))?.inFlight).toBe(0);
    expect(holds.inFlight(slotName('primary'))).toBe(6);
  });

  test('reports the end of the last request on a workload that has left the board', () => {
    const { holds, board, draining } = world();
    publish(board, { name: 'primary', targets: TARGETS.slice(0, 1) });
    const first = holds.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER);
    const second = holds.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER);
    publish(board, { name: 'primary', targets: TARGETS.slice(1, 2) });
    first?.release();
    expect(draining).toEqual([false]);
    second?.release();
    expect(draining).toEqual([false, true]);
  });

  test('counts the requests on a workload that has left the board until the last one ends', () => {
    const { holds, board } = world();
    const primary = slotName('primary');
    publish(board, { name: 'primary', targets: TARGETS.slice(0, 1) });
    const held = [1, 2].map(() => holds.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER));
    publish(board, { name: 'primary', targets: TARGETS.slice(1, 2) });
    holds.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(1, 2) }), HOLDER);
    expect(holds.inFlight(primary)).toBe(3);
    for (const hold of held) hold?.release();
    expect([holds.inFlight(primary), holds.inFlight(slotName('embed'))]).toEqual([1, 0]);
  });

  test('forgets old workloads, so that memory is bounded', () => {
    const { holds } = world();
    for (let index = 0; index < 6000; index += 1) {
      holds.acquire(boardSlotOf(`w${index}`), HOLDER)?.release();
    }
    expect(holds.activity().size).toBeLessThanOrEqual(4096);
    expect(holds.activity().has(workloadId('w5999'))).toBe(true);
  });
});

function boardSlotOf(workload: string): typeof SLOT {
  return { ...SLOT, targets: [{ workload: workloadId(workload), endpoint: { host: '127.0.0.1', port: 1 } }] };
}

test.each([
  [1, 5, 5],
  [2, 5, 2],
  [8, 5, 1],
])('each of %d processes has its part of %d requests in flight: %d', (shares, maxInFlight, most) => {
  const holds = createHolds({ now: () => 1, board: createBoard(), onActivity: () => undefined, shares });
  const slot = boardSlot({ name: 'primary', targets: [{ workload: 'w', port: 9 }], limits: { maxInFlight } });
  const held = Array.from({ length: 10 }, () => holds.acquire(slot, { onStopping: () => undefined }));
  expect([held.filter((hold) => hold !== undefined).length, holds.isFull(slot)]).toEqual([most, true]);
  held[0]?.release();
  expect(holds.isFull(slot)).toBe(false);
});
