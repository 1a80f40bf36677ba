import { describe, expect, test } from '@jest/globals';
import { createTraffic, type GatewayTraffic } from '../../src/gateway/traffic.ts';
import { createBoard, type Board } from '../../src/reconciler/board.ts';
import type { Traffic } from '../../src/reconciler/ports.ts';
import { boardSlot, PARK, publish, slotName, workloadId } from './support/board-fixture.ts';

const PRIMARY = slotName('primary');
const TARGETS = [{ workload: 'w', port: 1 }];
const HOLDER = { onHoldAborted: () => undefined };
const WAITER = { onOpen: () => undefined, onRefused: () => undefined };

function world(): { board: Board; traffic: GatewayTraffic; wakes: (number | undefined)[]; stop: AbortController } {
  const board = createBoard();
  const traffic = createTraffic({ board, now: () => performance.now(), settings: { SVC_PARK_LIMIT: 8, SVC_PARK_TIMEOUT: 60_000 } });
  const wakes: (number | undefined)[] = [];
  const stop = new AbortController();
  // Only what the reconciler sees.
  const port: Traffic = traffic;
  port.changes((withinMs) => void wakes.push(withinMs), stop.signal);
  return { board, traffic, wakes, stop };
}

describe('createTraffic()', () => {
  test('wakes once and not for each request until its facts are read', () => {
    const { traffic, wakes } = world();
    const slot = boardSlot({ name: 'primary', targets: TARGETS });
    publishOpen();
    for (let index = 0; index < 100; index += 1) traffic.holds.acquire(slot, HOLDER)?.release();
    expect(wakes.length).toBeLessThanOrEqual(2);
    const before = wakes.length;
    traffic.read();
    traffic.holds.acquire(slot, HOLDER);
    expect(wakes.length).toBe(before + 1);

    function publishOpen(): void {
      publish(createBoard(), { name: 'primary', targets: TARGETS });
    }
  });

  test('wakes at once for demand, also if a later wake is already requested', () => {
    const { board, traffic, wakes } = world();
    publish(board, { name: 'primary', targets: TARGETS }, { name: 'embed', admission: PARK });
    traffic.holds.acquire(boardSlot({ name: 'primary', targets: TARGETS }), HOLDER);
    traffic.parking.enter(slotName('embed'), WAITER, { deadline: performance.now() + 1000, again: false });
    expect(wakes).toEqual([250, 0]);
    traffic.parking.close('stopping');
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
