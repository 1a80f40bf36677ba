import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Hold } from '../../../src/gateway/request-events.ts';
import { createBufferBudget, createTraffic, type GatewayTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import type { Traffic } from '../../../src/reconciler/ports.ts';
import { boardSlot, PARK, publish, slotName, workloadId } from '../support/board-fixture.ts';

const PRIMARY = slotName('primary');
const TARGETS = [{ workload: 'w', port: 1 }];
const HOLDER = { onStopping: () => undefined };
const WAITER = { onOpen: () => undefined, fail: () => undefined };

/** For how long activity is left to settle. */
const ACTIVITY_MS = 200;
/** Longer than that, twice. */
const SETTLED_MS = 1000;

interface World {
  readonly board: Board;
  readonly traffic: GatewayTraffic;
  readonly wakes: (number | undefined)[];
  readonly stop: AbortController;
  /** Lets the time pass after which activity is compared with the board. */
  settle(ms?: number): void;
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function world(): World {
  const board = createBoard();
  const traffic = createTraffic({ board, now: () => performance.now(), settings: { SVC_PARK_LIMIT: 8, SVC_PARK_TIMEOUT: 60_000 } });
  const wakes: (number | undefined)[] = [];
  const stop = new AbortController();
  // Only what the reconciler sees.
  const port: Traffic = traffic;
  port.changes((withinMs) => void wakes.push(withinMs), stop.signal);
  return { board, traffic, wakes, stop, settle: (ms = SETTLED_MS) => void jest.advanceTimersByTime(ms) };
}

describe('createTraffic()', () => {
  test('wakes once and not for each request until its facts are read', () => {
    const { board, traffic, wakes, settle } = world();
    publish(board, { name: 'primary', targets: TARGETS });
    const slot = boardSlot({ name: 'primary', targets: TARGETS });
    for (let index = 0; index < 100; index += 1) traffic.holds.acquire(slot, HOLDER)?.release();
    settle();
    expect(wakes).toHaveLength(1);
    for (let index = 0; index < 100; index += 1) traffic.holds.acquire(slot, HOLDER)?.release();
    settle();
    expect(wakes).toHaveLength(1);
    traffic.read();
    traffic.holds.acquire(slot, HOLDER);
    settle();
    expect(wakes).toHaveLength(2);
  });

  test('wakes at once for demand, also if a later wake is already requested', () => {
    const { board, traffic, wakes, settle } = world();
    publish(board, { name: 'primary', targets: TARGETS }, { name: 'embed', admission: PARK });
    traffic.holds.acquire(boardSlot({ name: 'primary', targets: TARGETS }), HOLDER);
    settle();
    traffic.parking.enter(slotName('embed'), WAITER, { deadline: performance.now() + 1000, again: false });
    expect(wakes).toEqual([50, 0]);
    traffic.parking.close('stopping');
  });

  test('does not wake for requests that come and go while the board shows "serving", and wakes once when they are over', () => {
    const { board, traffic, wakes, settle } = world();
    const hold = (): Hold | undefined => traffic.holds.acquire(boardSlot({ name: 'primary', targets: TARGETS }), HOLDER);
    publish(board, { name: 'primary', targets: TARGETS, state: 'serving' });
    let held: Hold | undefined;
    for (let turn = 0; turn < 200; turn += 1) {
      // In every second turn, none is in flight when it is looked at.
      if (turn % 2 === 0) held = hold();
      else held?.release();
      settle(ACTIVITY_MS);
      traffic.read();
    }
    expect(wakes).toEqual([]);
    settle();
    expect(wakes).toEqual([50]);
  });

  test('wakes for a request in flight, and not for one that is over, while the board shows "idle"', () => {
    const { board, traffic, wakes, settle } = world();
    publish(board, { name: 'primary', targets: TARGETS, state: 'idle' });
    const slot = boardSlot({ name: 'primary', targets: TARGETS });
    traffic.holds.acquire(slot, HOLDER)?.release();
    settle();
    expect(wakes).toEqual([]);
    traffic.holds.acquire(slot, HOLDER);
    settle();
    expect(wakes).toEqual([50]);
  });

  test('wakes at once when the last request ends on a workload that has left the board', () => {
    const { board, traffic, wakes } = world();
    publish(board, { name: 'primary', targets: TARGETS });
    const hold = traffic.holds.acquire(boardSlot({ name: 'primary', targets: TARGETS }), HOLDER);
    publish(board, { name: 'primary', admission: PARK });
    hold?.release();
    expect(wakes.at(-1)).toBe(0);
  });

  test('reports requests in flight, last use and demand', () => {
    const { board, traffic } = world();
    publish(board, { name: 'primary', targets: TARGETS });
    traffic.holds.acquire(boardSlot({ name: 'primary', targets: TARGETS }), HOLDER);
    traffic.parking.noteDemand(PRIMARY, 5);
    const facts = traffic.read();
    expect(facts.workloads.get(workloadId('w'))?.inFlight).toBe(1);
    expect(facts.demand.get(PRIMARY)).toEqual({ waiting: 0, lastAskedAt: 5 });
    expect(traffic.ofSlot(PRIMARY)).toEqual({ inFlight: 1, parked: 0 });
  });

  test('does not wake a listener that has stopped', () => {
    const { traffic, wakes, stop } = world();
    stop.abort();
    traffic.noteFailure();
    expect(wakes).toEqual([]);
  });
});

test('a budget gives out all of its bytes and no more, and again what was given back', () => {
  const budget = createBufferBudget(10);
  expect([budget.reserve(4), budget.reserve(7), budget.reserve(6), budget.reserve(1)]).toEqual([true, false, true, false]);
  expect(budget.reservedBytes()).toBe(10);
  budget.release(4);
  expect([budget.reserve(5), budget.reserve(4)]).toEqual([false, true]);
});
