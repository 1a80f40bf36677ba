import { describe, expect, test } from '@jest/globals';
import { createBoard } from '../../../src/reconciler/board.ts';
import { createWorkerTraffic } from '../../../src/turbo/workers/worker-traffic.ts';
import { publish, slotName } from '../../gateway/support/board-fixture.ts';

const HOLDER = { onStopping: () => undefined };
const WAITER = { onOpen: () => undefined, fail: () => undefined };
const SLOT = slotName('primary');

function open() {
  let now = 1000;
  const board = createBoard();
  const slot = publish(board, { name: 'primary', targets: [{ workload: 'w', port: 1 }] }).slots.get(SLOT);
  if (slot === undefined) throw new Error('Publish the slot');
  const changes: boolean[] = [];
  const settings = { SVC_PARK_LIMIT: 8, SVC_PARK_TIMEOUT: 60_000 };
  const traffic = createWorkerTraffic({ board, now: () => now, settings, onChange: (isUrgent) => void changes.push(isUrgent) });
  return { board, slot, traffic, changes, pass: (ms: number) => void (now += ms) };
}

describe('createWorkerTraffic()', () => {
  test('says at once when a request waits, and when the last one has left', () => {
    const { traffic, changes } = open();
    const ticket = traffic.parking.enter(SLOT, WAITER, { deadline: 10_000, again: false });
    expect(changes).toEqual([true]);
    if (ticket.kind === 'parked') ticket.leave();
    expect(changes).toEqual([true, true]);
  });

  test('says at once when a workload that the board does not offer any more has lost its last request, and an upstream has failed', () => {
    const { board, slot, traffic, changes } = open();
    const hold = traffic.holds.acquire(slot, HOLDER);
    publish(board, { name: 'primary', targets: [{ workload: 'other', port: 2 }] });
    expect(changes).toEqual([false]);
    hold?.release();
    expect(changes).toEqual([false, true]);
    traffic.noteFailure();
    expect(changes).toEqual([false, true, true]);
  });

  test('reports what has changed since the last time, with ages', () => {
    const { slot, traffic, pass } = open();
    traffic.parking.noteDemand(SLOT, 1000);
    const hold = traffic.holds.acquire(slot, HOLDER);
    pass(30);
    const slots = [{ slot: SLOT, inFlight: 1, waiting: 0, waitingAgoMs: undefined, askedAgoMs: 30 }];
    expect(traffic.takeRows()).toEqual({
      workloads: [{ workload: 'w', inFlight: 1, ended: 0, failed: 0, usedAgoMs: 30, heardAgoMs: undefined }],
      slots,
    });
    expect(traffic.takeRows()).toEqual({ workloads: [], slots: [] });
    hold?.heard();
    hold?.release();
    pass(5);
    expect(traffic.takeRows()).toEqual({
      workloads: [{ workload: 'w', inFlight: 0, ended: 1, failed: 0, usedAgoMs: 5, heardAgoMs: 5 }],
      slots: [{ ...slots[0], inFlight: 0, askedAgoMs: 35 }],
    });
  });
});
