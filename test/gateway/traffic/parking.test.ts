import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { Claim } from '../../../src/gateway/traffic/decide/turns.ts';
import type { Refusal } from '../../../src/gateway/route/decide/route.ts';
import { createParking, type Parking } from '../../../src/gateway/traffic/parking.ts';
import type { Waiter } from '../../../src/gateway/traffic/slot-queue.ts';
import { createBoard, type Board } from '../../../src/reconciler/board.ts';
import { boardSlot, DISABLED, OPEN, PARK, publish, slotName } from '../support/board-fixture.ts';

const PRIMARY = slotName('primary');

const CLAIM: Claim = { caller: '', weight: 1, priority: 'normal', work: 1 };

interface RecordingWaiter extends Waiter {
  readonly refusals: Refusal[];
  opened: number;
}

function waiter(name: string, log: string[], accepts = true): RecordingWaiter {
  const made: RecordingWaiter = {
    refusals: [],
    opened: 0,
    onOpen() {
      made.opened += 1;
      log.push(name);
    },
    fail: (code, message) => void made.refusals.push({ kind: 'refuse', code, message }),
    onRoutable: () => void log.push(`${name}:board`),
    accepts: () => accepts,
  };
  return made;
}

interface World {
  readonly board: Board;
  readonly parking: Parking;
  readonly log: string[];
  demands: number;
  enter(waiter: Waiter, again?: boolean, caller?: string): ReturnType<Parking['enter']>;
}

function world(limit = 64, timeoutMs = 60_000): World {
  const board = createBoard();
  const made: World = {
    board,
    log: [],
    demands: 0,
    parking: createParking({
      board,
      now: () => performance.now(),
      settings: { SVC_PARK_LIMIT: limit, SVC_PARK_TIMEOUT: timeoutMs },
      onDemand: () => (made.demands += 1),
    }),
    enter: (who, again = false, caller = '') =>
      made.parking.enter(PRIMARY, who, { deadline: performance.now() + timeoutMs, again, claim: { ...CLAIM, caller } }),
  };
  publish(board, { name: 'primary', admission: PARK });
  return made;
}

describe('createParking()', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test('admits waiting requests in order of arrival when the slot opens and not before', () => {
    const { board, parking, log, enter } = world();
    for (const name of ['a', 'b', 'c']) enter(waiter(name, log));
    publish(board, { name: 'primary', admission: PARK });
    expect([log, parking.waiting(PRIMARY)]).toEqual([[], 3]);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['a', 'b', 'c'], 0]);
    parking.close('stopping');
  });

  test('tells each request its place', () => {
    const { parking, log, enter } = world();
    const tickets = ['a', 'b', 'c'].flatMap((name) => {
      const ticket = enter(waiter(name, log));
      return ticket.kind === 'parked' ? [ticket] : [];
    });
    expect(tickets.map(({ outlook }) => outlook())).toMatchObject([
      { position: 0, waiting: 3 },
      { position: 1, waiting: 3 },
      { position: 2, waiting: 3 },
    ]);
    tickets.shift()?.leave();
    expect(tickets.map(({ outlook }) => outlook().waiting)).toEqual([2, 2]);
    parking.close('stopping');
  });

  test('says at the deadline what prevented a start', async () => {
    const { board, log, enter } = world(64, 20);
    publish(board, { name: 'primary', admission: { kind: 'park', because: 'The device is busy' } });
    const late = waiter('late', log);
    enter(late);
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(late.refusals).toEqual([
      {
        kind: 'refuse',
        code: 'slot.loading',
        message: 'Slot "primary" did not become ready within 0.02 s ("SVC_PARK_TIMEOUT"): The device is busy; try again later',
      },
    ]);
  });

  test('never admits a request whose client has left', () => {
    const { board, parking, log, enter } = world();
    const gone = waiter('gone', log);
    const ticket = enter(gone);
    enter(waiter('stays', log));
    if (ticket.kind === 'parked') ticket.leave();
    if (ticket.kind === 'parked') ticket.leave();
    expect(parking.waiting(PRIMARY)).toBe(1);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, gone.refusals]).toEqual([['stays'], []]);
  });

  test('refuses requests over the limit of one slot, but not those that were admitted before', () => {
    const { parking, log, enter } = world(2);
    expect(enter(waiter('a', log)).kind).toBe('parked');
    expect(enter(waiter('b', log)).kind).toBe('parked');
    expect(enter(waiter('c', log))).toMatchObject({ kind: 'refuse', code: 'slot.queue_full' });
    expect(enter(waiter('d', log), true).kind).toBe('parked');
    const other = parking.enter(slotName('embed'), waiter('e', log), { deadline: performance.now() + 1000, again: false });
    expect(other.kind).toBe('parked');
    parking.close('stopping');
  });

  test('refuses all waiting requests with the reason when the slot will not open', () => {
    const { board, log, enter } = world();
    const one = waiter('a', log);
    enter(one);
    publish(board, { name: 'primary', admission: DISABLED });
    expect(one).toMatchObject({ opened: 0, refusals: [{ code: 'slot.disabled' }] });
  });

  test('refuses all waiting requests when the slot is removed', () => {
    const { board, log, enter } = world();
    const one = waiter('a', log);
    enter(one);
    publish(board, { name: 'embed' });
    expect(one.refusals).toMatchObject([{ code: 'slot.not_found' }]);
  });

  test('refuses exactly once with slot.loading after the deadline', () => {
    jest.useFakeTimers();
    const { board, parking, log, enter } = world(64, 10_000);
    const one = waiter('a', log);
    enter(one);
    jest.advanceTimersByTime(9_999);
    expect(one.refusals).toEqual([]);
    jest.advanceTimersByTime(10_000);
    expect(one.refusals).toMatchObject([{ code: 'slot.loading' }]);
    publish(board, { name: 'primary', admission: OPEN });
    expect([one.opened, one.refusals.length, parking.waiting(PRIMARY)]).toEqual([0, 1, 0]);
  });

  test('a load by hand waits like a request, beyond the time of one, until the slot opens', () => {
    jest.useFakeTimers();
    const { board, parking } = world(1, 10_000);
    parking.ask(PRIMARY);
    jest.advanceTimersByTime(60_000);
    expect(parking.demand().get(PRIMARY)).toMatchObject({ waiting: 1 });
    publish(board, { name: 'primary', admission: OPEN });
    expect(parking.waiting(PRIMARY)).toBe(0);
    parking.ask(PRIMARY);
    expect([parking.waiting(PRIMARY), jest.getTimerCount()]).toEqual([0, 0]);
  });

  test.each([
    [0, 1],
    [60_000, 0],
  ])('a load by hand of a slot that is still refused waits for the board after the edit, but not for long', (laterMs, waiting) => {
    jest.useFakeTimers();
    const { board, parking } = world();
    publish(board, { name: 'primary', admission: DISABLED });
    parking.ask(PRIMARY);
    expect(parking.waiting(PRIMARY)).toBe(0);
    jest.advanceTimersByTime(laterMs);
    publish(board, { name: 'primary', admission: DISABLED });
    publish(board, { name: 'primary', admission: PARK });
    expect(parking.waiting(PRIMARY)).toBe(waiting);
    parking.close('stopping');
  });

  test('leaves no timer behind', () => {
    jest.useFakeTimers();
    const { board, log, enter } = world();
    const ticket = enter(waiter('a', log));
    enter(waiter('b', log));
    if (ticket.kind === 'parked') ticket.leave();
    publish(board, { name: 'primary', admission: OPEN });
    expect(jest.getTimerCount()).toBe(0);
  });

  test('does not admit a request twice in one publication when it enters again at once', () => {
    const { board, parking, log, enter } = world();
    const stubborn: Waiter = {
      onOpen() {
        log.push('again');
        enter(stubborn, true);
      },
      fail: () => undefined,
    };
    enter(stubborn);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['again'], 1]);
    parking.close('stopping');
  });

  test('keeps a request that does not accept this state of the slot', () => {
    const { board, parking, log, enter } = world();
    enter(waiter('picky', log, false));
    enter(waiter('easy', log));
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['easy'], 1]);
    parking.close('stopping');
  });

  test('keeps requests until the first board is published', () => {
    const board = createBoard();
    const log: string[] = [];
    const parking = createParking({
      board,
      now: () => 0,
      settings: { SVC_PARK_LIMIT: 1, SVC_PARK_TIMEOUT: 1000 },
      onDemand: () => undefined,
    });
    expect(parking.enter(undefined, waiter('a', log), { deadline: 1000, again: false }).kind).toBe('parked');
    expect(parking.enter(undefined, waiter('b', log), { deadline: 1000, again: false })).toMatchObject({ code: 'slot.queue_full' });
    publish(board, { name: 'primary', admission: OPEN });
    expect(log).toEqual(['a:board']);
  });

  test('reports how many requests wait for a slot, and when it was last asked for', () => {
    const made = world();
    made.parking.noteDemand(PRIMARY, 7);
    made.enter(waiter('a', made.log));
    expect(made.parking.demand()).toEqual(new Map([[PRIMARY, { waiting: 1, waitingSince: expect.any(Number), lastAskedAt: 7 }]]));
    expect(made.demands).toBe(1);
    publish(made.board, { name: 'embed' });
    expect(made.parking.demand().size).toBe(0);
  });

  test('names the caller of the request that waits for longest, and of one that has gone elsewhere', () => {
    const [made, elsewhere, byHand] = [world(), world(), world()];
    const caller = ({ parking }: World) => parking.demand().get(PRIMARY)?.caller;
    made.parking.noteDemand(PRIMARY, 7);
    const first = made.enter(waiter('a', made.log), false, 'token:1');
    made.enter(waiter('b', made.log), false, 'token:2');
    expect(caller(made)).toBe('token:1');
    if (first.kind === 'parked') first.leave();
    expect(caller(made)).toBe('token:2');
    elsewhere.parking.ask(PRIMARY, 'token:3');
    expect(caller(elsewhere)).toBe('token:3');
    byHand.parking.ask(PRIMARY);
    expect([caller(byHand), byHand.parking.waiting(PRIMARY)]).toEqual([undefined, 1]);
  });

  test('tells each request how many will probably be served before it, and how long that will take', () => {
    let [time, isFull] = [0, true];
    const board = createBoard();
    const settings = { SVC_PARK_LIMIT: 8, SVC_PARK_TIMEOUT: 60_000 };
    const parking = createParking({ board, now: () => time, settings, isFull: () => isFull, onDemand: () => undefined });
    publish(board, { name: 'primary', targets: [{ workload: 'w', port: 9 }], limits: { maxInFlight: 1 } });
    const log: string[] = [];
    const enter = (name: string, more: Partial<Claim> = {}) => {
      const who = waiter(name, log);
      const served = { ...who, onOpen: () => void (isFull = log.push(name) > 0) };
      const claim: Claim = { caller: 'a', weight: 1, priority: 'normal', work: 1, ...more };
      const entered = parking.enter(PRIMARY, served, { deadline: 60_000, again: false, claim });
      if (entered.kind !== 'parked') throw new Error(entered.message);
      return entered;
    };
    const tickets = [enter('a1'), enter('a2'), enter('b1', { caller: 'b' }), enter('low', { priority: 'low' })];
    const positions = () => tickets.map((ticket) => ticket.outlook().position);
    expect(positions()).toEqual([0, 2, 1, 3]);
    expect(tickets[0]?.outlook().waitMs).toBeUndefined();
    for (let turn = 0; turn < 2; turn += 1) {
      time += 2000;
      isFull = false;
      parking.serve(PRIMARY);
    }
    expect(log).toEqual(['a1', 'b1']);
    expect(tickets[1]?.outlook()).toEqual({ position: 0, waiting: 2, waitMs: 2000 });
    expect(tickets[3]?.outlook()).toEqual({ position: 1, waiting: 2, waitMs: 4000 });
    parking.close('stopping');
  });

  test('passes the published slot to the requests it admits', () => {
    const { board, enter } = world();
    const seen: unknown[] = [];
    enter({ onOpen: (slot) => void seen.push(slot.targets), fail: () => undefined });
    publish(board, { name: 'primary', targets: [{ workload: 'w', port: 9 }] });
    expect(seen).toEqual([boardSlot({ name: 'primary', targets: [{ workload: 'w', port: 9 }] }).targets]);
  });
});
