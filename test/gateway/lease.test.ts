import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createLeases, type Lease, type LeaseHolder, type Leases } from '../../src/gateway/lease.ts';
import { createBoard, type Board } from '../../src/reconciler/board.ts';
import { boardSlot, publish, slotName, workloadId } from './support/board-fixture.ts';

const HOLDER: LeaseHolder = { onLeaseAborted: () => undefined };
const TARGETS = ['a', 'b', 'c'].map((workload, index) => ({ workload, port: index + 1 }));
const SLOT = boardSlot({ name: 'primary', targets: TARGETS });

interface World {
  readonly leases: Leases;
  readonly board: Board;
  readonly draining: boolean[];
  time: number;
}

function world(): World {
  const board = createBoard();
  const draining: boolean[] = [];
  const made: World = {
    leases: createLeases({ now: () => made.time, board, onActivity: (change) => void draining.push(change.draining) }),
    board,
    draining,
    time: 1,
  };
  return made;
}

function take(leases: Leases, holder = HOLDER): Lease {
  const lease = leases.acquire(SLOT, holder);
  if (lease === undefined) throw new Error('no target');
  return lease;
}

describe('createLeases()', () => {
  test('spreads requests over the targets, and counts each lease until its first release', () => {
    const action = fc.record({ kind: fc.constantFrom('take', 'release', 'release-again'), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const { leases } = world();
        const held: Lease[] = [];
        const gone: Lease[] = [];
        for (const { kind, which } of actions) {
          if (kind === 'take') {
            const before = leases.read();
            const lease = take(leases);
            const load = (id: string): number => before.get(workloadId(id))?.inFlight ?? 0;
            expect(load(lease.workload)).toBe(Math.min(...TARGETS.map((target) => load(target.workload))));
            held.push(lease);
          } else if (kind === 'release' && held.length > 0) {
            const [lease] = held.splice(which % held.length, 1);
            lease?.release();
            if (lease !== undefined) gone.push(lease);
          } else if (gone.length > 0) gone[which % gone.length]?.release();
          const counted = [...leases.read().values()].reduce((sum, entry) => sum + entry.inFlight, 0);
          expect(counted).toBe(held.length);
          expect(leases.inFlight(slotName('primary'))).toBe(held.length);
        }
      }),
    );
  });

  test('avoids the target that has just failed, unless there is no other', () => {
    const { leases } = world();
    const avoided = { workload: workloadId('a'), endpoint: { host: '127.0.0.1', port: 1 } };
    for (let index = 0; index < 10; index += 1) expect(leases.acquire(SLOT, HOLDER, avoided)?.workload).not.toBe('a');
    const only = boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) });
    expect(leases.acquire(only, HOLDER, avoided)?.workload).toBe('a');
  });

  test('gives none on a slot without targets', () => {
    expect(world().leases.acquire(boardSlot({ name: 'primary' }), HOLDER)).toBeUndefined();
  });

  test('remembers when a workload was last used: begin while a request runs, end after it', () => {
    const made = world();
    const lease = take(made.leases);
    expect(made.leases.read().get(lease.workload)).toEqual({ inFlight: 1, lastUsedAt: 1 });
    made.time = 50;
    lease.release();
    expect(made.leases.read().get(lease.workload)).toEqual({ inFlight: 0, lastUsedAt: 50 });
  });

  test('aborts the holders of one workload, each once, and they give back what they hold', () => {
    const { leases } = world();
    const aborted: string[] = [];
    for (let index = 0; index < 9; index += 1) {
      const lease: Lease = take(leases, {
        onLeaseAborted() {
          aborted.push(lease.workload);
          lease.release();
        },
      });
    }
    leases.abort(workloadId('b'));
    expect(aborted).toEqual(['b', 'b', 'b']);
    expect(leases.read().get(workloadId('b'))?.inFlight).toBe(0);
    expect(leases.inFlight(slotName('primary'))).toBe(6);
  });

  test('tells when the last request of a workload that left the board has ended', () => {
    const { leases, board, draining } = world();
    publish(board, { name: 'primary', targets: TARGETS.slice(0, 1) });
    const first = leases.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER);
    const second = leases.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER);
    publish(board, { name: 'primary', targets: TARGETS.slice(1, 2) });
    first?.release();
    expect(draining).toEqual([false]);
    second?.release();
    expect(draining).toEqual([false, true]);
  });

  test('counts the requests of a workload that left the board until the last one ends', () => {
    const { leases, board } = world();
    const primary = slotName('primary');
    publish(board, { name: 'primary', targets: TARGETS.slice(0, 1) });
    const held = [1, 2].map(() => leases.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(0, 1) }), HOLDER));
    publish(board, { name: 'primary', targets: TARGETS.slice(1, 2) });
    leases.acquire(boardSlot({ name: 'primary', targets: TARGETS.slice(1, 2) }), HOLDER);
    expect(leases.inFlight(primary)).toBe(3);
    for (const lease of held) lease?.release();
    expect([leases.inFlight(primary), leases.inFlight(slotName('embed'))]).toEqual([1, 0]);
  });

  test('does not grow with the workloads that come and go', () => {
    const { leases } = world();
    for (let index = 0; index < 6000; index += 1) {
      leases.acquire(boardSlotOf(`w${index}`), HOLDER)?.release();
    }
    expect(leases.read().size).toBeLessThanOrEqual(4096);
    expect(leases.read().has(workloadId('w5999'))).toBe(true);
  });
});

function boardSlotOf(workload: string): typeof SLOT {
  return { ...SLOT, targets: [{ workload: workloadId(workload), endpoint: { host: '127.0.0.1', port: 1 } }] };
}
