import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createParking, type Parking, type Refusal, type Ticket, type Waiter } from '../../src/gateway/parking.ts';
import { createBoard, type Board } from '../../src/reconciler/board.ts';
import { boardSlot, DISABLED, OPEN, PARK, publish, slotName } from './support/board-fixture.ts';

const PRIMARY = slotName('primary');

interface Heard extends Waiter {
  readonly refusals: Refusal[];
  opened: number;
}

function waiter(name: string, log: string[], wants = true): Heard {
  const heard: Heard = {
    refusals: [],
    opened: 0,
    onOpen() {
      heard.opened += 1;
      log.push(name);
    },
    onRefused: (refusal) => void heard.refusals.push(refusal),
    onBoard: () => void log.push(`${name}:board`),
    wants: () => wants,
  };
  return heard;
}

interface World {
  readonly board: Board;
  readonly parking: Parking;
  readonly log: string[];
  demands: number;
  enter(waiter: Waiter, again?: boolean): Ticket | string;
}

function world(limit = 64, timeoutMs = 60_000): World {
  const board = createBoard();
  const made: World = {
    board,
    log: [],
    demands: 0,
    parking: createParking({ board, now: () => Date.now(), limit, timeoutMs, onDemand: () => (made.demands += 1) }),
    enter: (who, again = false) => made.parking.enter(PRIMARY, who, { deadline: Date.now() + timeoutMs, again }),
  };
  publish(board, { name: 'primary', admission: PARK });
  return made;
}

describe('createParking()', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test('lets waiting requests in, first come first served, when the slot opens and not before', () => {
    const { board, parking, log, enter } = world();
    for (const name of ['a', 'b', 'c']) enter(waiter(name, log));
    publish(board, { name: 'primary', admission: PARK });
    expect([log, parking.waiting(PRIMARY)]).toEqual([[], 3]);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['a', 'b', 'c'], 0]);
    parking.close('over');
  });

  test('never lets in a request whose client has left', () => {
    const { board, parking, log, enter } = world();
    const gone = waiter('gone', log);
    const ticket = enter(gone);
    enter(waiter('stays', log));
    if (typeof ticket !== 'string') ticket.leave();
    if (typeof ticket !== 'string') ticket.leave();
    expect(parking.waiting(PRIMARY)).toBe(1);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, gone.refusals]).toEqual([['stays'], []]);
  });

  test('turns away what is over the limit of one slot, but nobody who had been in before', () => {
    const { parking, log, enter } = world(2);
    expect(typeof enter(waiter('a', log))).toBe('object');
    expect(typeof enter(waiter('b', log))).toBe('object');
    expect(enter(waiter('c', log))).toBe('queue-full');
    expect(typeof enter(waiter('d', log), true)).toBe('object');
    const other = parking.enter(slotName('embed'), waiter('e', log), { deadline: Date.now() + 1000, again: false });
    expect(typeof other).toBe('object');
    parking.close('over');
  });

  test('refuses everyone with the reason when the slot will not open', () => {
    const { board, log, enter } = world();
    const one = waiter('a', log);
    enter(one);
    publish(board, { name: 'primary', admission: DISABLED });
    expect(one).toMatchObject({ opened: 0, refusals: [{ code: 'slot.disabled' }] });
  });

  test('refuses everyone when the slot is removed', () => {
    const { board, log, enter } = world();
    const one = waiter('a', log);
    enter(one);
    publish(board, { name: 'embed' });
    expect(one.refusals).toMatchObject([{ code: 'slot.not_found' }]);
  });

  test('refuses with slot.loading when the time is over, exactly once', () => {
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

  test('leaves no timer behind', () => {
    jest.useFakeTimers();
    const { board, log, enter } = world();
    const ticket = enter(waiter('a', log));
    enter(waiter('b', log));
    if (typeof ticket !== 'string') ticket.leave();
    publish(board, { name: 'primary', admission: OPEN });
    expect(jest.getTimerCount()).toBe(0);
  });

  test('does not meet twice in one publication who comes back at once', () => {
    const { board, parking, log, enter } = world();
    const stubborn: Waiter = {
      onOpen() {
        log.push('again');
        enter(stubborn, true);
      },
      onRefused: () => undefined,
    };
    enter(stubborn);
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['again'], 1]);
    parking.close('over');
  });

  test('keeps waiting who does not want this state of the slot', () => {
    const { board, parking, log, enter } = world();
    enter(waiter('picky', log, false));
    enter(waiter('easy', log));
    publish(board, { name: 'primary', admission: OPEN });
    expect([log, parking.waiting(PRIMARY)]).toEqual([['easy'], 1]);
    parking.close('over');
  });

  test('holds requests until the first board is there', () => {
    const board = createBoard();
    const log: string[] = [];
    const parking = createParking({ board, now: () => 0, limit: 1, timeoutMs: 1000, onDemand: () => undefined });
    expect(typeof parking.enter(undefined, waiter('a', log), { deadline: 1000, again: false })).toBe('object');
    expect(parking.enter(undefined, waiter('b', log), { deadline: 1000, again: false })).toBe('queue-full');
    publish(board, { name: 'primary', admission: OPEN });
    expect(log).toEqual(['a:board']);
  });

  test('shows demand as a fact: how many wait, and when the slot was last asked for', () => {
    const made = world();
    made.parking.asked(PRIMARY, 7);
    made.enter(waiter('a', made.log));
    expect(made.parking.read()).toEqual(new Map([[PRIMARY, { waiting: 1, lastAskedAt: 7 }]]));
    expect(made.demands).toBe(1);
    publish(made.board, { name: 'embed' });
    expect(made.parking.read().size).toBe(0);
  });

  test('gives the slot as it was published to who is let in', () => {
    const { board, enter } = world();
    const seen: unknown[] = [];
    enter({ onOpen: (slot) => void seen.push(slot.targets), onRefused: () => undefined });
    publish(board, { name: 'primary', targets: [{ workload: 'w', port: 9 }] });
    expect(seen).toEqual([boardSlot({ name: 'primary', targets: [{ workload: 'w', port: 9 }] }).targets]);
  });
});
