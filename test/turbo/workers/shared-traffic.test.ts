import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { createBoard } from '../../../src/reconciler/board.ts';
import { publish, slotName, workloadId } from '../../gateway/support/board-fixture.ts';
import { createSharedTraffic } from '../../../src/turbo/workers/shared-traffic.ts';
import type { TrafficRows } from '../../../src/turbo/workers/messages.ts';

const SLOT = slotName('primary');
const W = workloadId('w');
const NOW = 10_000;
const SETTINGS = { SVC_PARK_LIMIT: 8, SVC_PARK_TIMEOUT: 1000 };

function open() {
  const board = createBoard();
  const local = createTraffic({ board, now: () => NOW, settings: SETTINGS });
  const slot = publish(board, { name: 'primary', targets: [{ workload: 'w', port: 1 }] }).slots.get(SLOT);
  const aborted: string[] = [];
  let answer: () => void = () => undefined;
  const shared = createSharedTraffic({
    local,
    board,
    now: () => NOW,
    abort: (workload) => void aborted.push(workload),
    sync: () => new Promise((resolve) => (answer = resolve)),
  });
  const wakes: (number | undefined)[] = [];
  shared.changes((ms) => void wakes.push(ms), new AbortController().signal);
  const hold = () => (slot === undefined ? undefined : local.holds.acquire(slot, { onStopping: () => undefined }));
  return { board, shared, aborted, wakes, hold, answer: () => answer() };
}

/** `waiting`: requests that have been parked for a second. */
function rows(inFlight: number, waiting = 0): TrafficRows {
  return {
    workloads: [{ workload: W, inFlight, ended: 10, failed: 1, usedAgoMs: 100, heardAgoMs: 50 }],
    slots: [{ slot: SLOT, inFlight, waiting, waitingAgoMs: waiting > 0 ? 1000 : undefined, caller: 'token:1', askedAgoMs: 200 }],
  };
}

afterEach(() => void jest.useRealTimers());

describe('createSharedTraffic()', () => {
  test('adds up what is in flight and waits in all processes', () => {
    const { shared, hold } = open();
    hold();
    shared.take(1, rows(2, 1), false);
    shared.take(2, rows(3, 2), false);
    expect(shared.read().workloads.get(W)).toEqual({ inFlight: 6, ended: 20, failed: 2, lastUsedAt: NOW, lastHeardAt: NOW - 50 });
    expect(shared.read().demand.get(SLOT)).toEqual({ waiting: 3, waitingSince: NOW - 1000, caller: 'token:1', lastAskedAt: NOW - 200 });
    expect(shared.ofSlot(SLOT)).toMatchObject({ inFlight: 6, parked: 3 });
    shared.take(2, rows(1), false);
    expect(shared.ofSlot(SLOT)).toMatchObject({ inFlight: 4, parked: 1 });
  });

  test('forgets the requests of a worker that has ended, not when they were, and asks for a pass', () => {
    const { shared, wakes } = open();
    shared.take(1, rows(2, 1), false);
    shared.read();
    shared.forget(1);
    expect(wakes).toEqual([0]);
    expect(shared.read().workloads.get(W)).toEqual({ inFlight: 0, ended: 10, failed: 1, lastUsedAt: NOW - 100, lastHeardAt: NOW - 50 });
    expect(shared.read().demand.get(SLOT)).toEqual({ waiting: 0, lastAskedAt: NOW - 200 });
    expect(shared.ofSlot(SLOT)).toMatchObject({ inFlight: 0, parked: 0 });
  });

  test('ends the requests of all processes on a workload', () => {
    const { shared, aborted } = open();
    shared.abort(W);
    expect(aborted).toEqual(['w']);
  });

  test('asks for a pass at once where a worker says that it is urgent, once for each look', () => {
    const { shared, wakes } = open();
    shared.take(1, rows(0, 1), true);
    shared.take(2, rows(0, 1), true);
    expect(wakes).toEqual([0]);
    shared.read();
    shared.take(2, rows(0, 2), true);
    expect(wakes).toEqual([0, 0]);
  });

  test('asks for a pass where the board does not show that a worker has requests', async () => {
    jest.useFakeTimers();
    const { shared, wakes } = open();
    shared.take(1, rows(1), false);
    await jest.advanceTimersByTimeAsync(500);
    expect(wakes).toEqual([50]);
  });

  test.each<[string, number, number, boolean]>([
    ['nothing has come: as planned', 0, 0, true],
    ['a request came in before the worker heard of the board: not as planned', 0, 1, false],
    ['there were requests when the stop was planned', 1, 2, true],
    ['the requests have ended meanwhile', 1, 0, true],
  ])('settles a workload once all workers have answered; %s', async (_, known, late, expected) => {
    const { shared, answer } = open();
    shared.take(1, rows(known), false);
    shared.read();
    let isDone = false;
    const settled = shared.settle?.(W).finally(() => (isDone = true));
    // Another pass looks meanwhile.
    shared.take(1, rows(late), false);
    shared.read();
    await Promise.resolve();
    expect(isDone).toBe(false);
    answer();
    expect(await settled).toBe(expected);
  });
});
