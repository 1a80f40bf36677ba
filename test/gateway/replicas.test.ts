/** Several replicas behind one workload: each is an endpoint. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Hold } from '../../src/gateway/request-events.ts';
import { createHolds, type Holder, type Holds } from '../../src/gateway/traffic/hold.ts';
import { createBoard, type BoardSlot, type BoardView } from '../../src/reconciler/board.ts';
import { boardSlot, boardView, workloadId } from './support/board-fixture.ts';

const HOLDER: Holder = { onStopping: () => undefined };

/** A new object each time, as in each pass. */
const withReplicas = (...ports: readonly number[]): BoardSlot =>
  boardSlot({ name: 'primary', targets: ports.map((port) => ({ workload: 'w', port })) });
const newHolds = (): Holds => createHolds({ now: () => 1, board: createBoard(), onActivity: () => undefined });

function acquire(holds: Holds, slot: BoardSlot, failed?: Hold, conversation?: string): Hold {
  const hold = holds.acquire(slot, HOLDER, failed === undefined ? [] : [failed], conversation);
  if (hold === undefined) throw new Error('No target');
  return hold;
}

const portsOf = (holds: readonly Hold[]): readonly number[] => holds.map(({ endpoint }) => endpoint.port);

describe('createHolds() with several replicas of one workload', () => {
  test('picks the replica with the fewest requests in flight while replicas come and go', () => {
    const action = fc.record({ kind: fc.constantFrom('acquire', 'release', 'scale'), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
        const holds = newHolds();
        let slot = withReplicas(1, 2, 3);
        const held: Hold[] = [];
        for (const { kind, which } of actions) {
          if (kind === 'acquire') {
            const load = (port: number): number => portsOf(held).filter((each) => each === port).length;
            const hold = acquire(holds, slot);
            expect(load(hold.endpoint.port)).toBe(Math.min(...slot.targets.map(({ endpoint }) => load(endpoint.port))));
            held.push(hold);
          } else if (kind === 'release' && held.length > 0) held.splice(which % held.length, 1)[0]?.release();
          else slot = withReplicas(...[1, 2, 3, 4, 5].filter((port) => port === 1 + (which % 5) || (which >> port) % 2 === 0));
          expect(holds.activity().get(workloadId('w'))?.inFlight ?? 0).toBe(held.length);
        }
      }),
    );
  });

  test('spreads sequential requests evenly over the replicas, across publications and beside other slots', () => {
    const holds = newHolds();
    const other = boardSlot({ name: 'embed', targets: [7, 8].map((port) => ({ workload: 'e', port })) });
    const used: number[] = [];
    for (let index = 0; index < 12; index += 1) {
      const hold = acquire(holds, withReplicas(1, 2, 3));
      used.push(hold.endpoint.port);
      hold.release();
      acquire(holds, other).release();
    }
    for (const port of [1, 2, 3]) expect(used.filter((each) => each === port)).toHaveLength(4);
  });

  test('counts the requests of a replica that used to be the only one', () => {
    const holds = newHolds();
    for (let index = 0; index < 3; index += 1) acquire(holds, withReplicas(1));
    expect(portsOf([1, 2, 3].map(() => acquire(holds, withReplicas(1, 2))))).toEqual([2, 2, 2]);
  });

  test('avoids the replica that has just failed, but not the others of its workload', () => {
    const holds = newHolds();
    const failed = acquire(holds, withReplicas(1, 2));
    failed.release();
    const next = [1, 2, 3, 4].map(() => acquire(holds, withReplicas(1, 2), failed));
    expect(portsOf(next)).not.toContain(failed.endpoint.port);
    expect(acquire(holds, withReplicas(failed.endpoint.port), failed).endpoint).toEqual(failed.endpoint);
  });

  test('tries each of the replicas once, then the one that failed first, for a conversation as well', () => {
    for (const conversation of [undefined, 'a', 'b', 'c']) {
      const holds = newHolds();
      const failed: Hold[] = [];
      for (let tries = 0; tries < 3; tries += 1) {
        const hold = holds.acquire(withReplicas(1, 2, 3), HOLDER, failed, conversation);
        if (hold === undefined) throw new Error('No target');
        hold.release();
        failed.push(hold);
      }
      expect(new Set(portsOf(failed))).toEqual(new Set([1, 2, 3]));
      expect(holds.acquire(withReplicas(1, 2, 3), HOLDER, failed, conversation)?.endpoint).toEqual(failed[0]?.endpoint);
    }
  });

  test('reports a workload as draining when its slot has no target of it left', () => {
    const board = createBoard();
    const draining: boolean[] = [];
    const holds = createHolds({ now: () => 1, board, onActivity: (change) => void draining.push(change.draining) });
    board.publish(boardView(1, [{ name: 'primary', targets: [1, 2].map((port) => ({ workload: 'w', port })) }]));
    const hold = acquire(holds, withReplicas(1, 2));
    board.publish(boardView(2, [{ name: 'primary', targets: [{ workload: 'w', port: 2 }] }]));
    hold.release();
    const last = acquire(holds, withReplicas(2));
    board.publish(boardView(3, [{ name: 'primary', targets: [{ workload: 'x', port: 9 }] }]));
    last.release();
    expect(draining).toEqual([false, false, false, true]);
  });

  test('reads only its own slot, however many there are', () => {
    const sketches = Array.from({ length: 2000 }, (_, index) => ({ name: `s${index}`, targets: [{ workload: `w${index}`, port: 1 }] }));
    const view = boardView(1, sketches);
    const slots = new Map(view.slots);
    slots.values =
      slots.entries =
      slots.keys =
      slots[Symbol.iterator] =
        () => {
          throw new Error('All slots were read for one request');
        };
    slots.forEach = () => {
      throw new Error('All slots were read for one request');
    };
    const guarded: BoardView = { ...view, slots };
    const draining: boolean[] = [];
    const holds = createHolds({
      now: () => 1,
      board: { current: () => guarded },
      onActivity: (change) => void draining.push(change.draining),
    });
    const [slot] = view.slots.values();
    if (slot === undefined) throw new Error('No slot');
    acquire(holds, slot).release();
    expect(draining).toEqual([false, false]);
  });
});
