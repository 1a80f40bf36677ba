/** Random worlds of holds and queues: swaps, memory turns, edits of limits, cancelled requests and restarts. The bound holds in each. */
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { mostWorkBefore, type Claim } from '../../../src/gateway/traffic/decide/turns.ts';
import type { Hold } from '../../../src/gateway/request-events.ts';
import type { Ticket } from '../../../src/gateway/traffic/parking.ts';
import { createTraffic, type GatewayTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { createBoard, type Board, type BoardSlot, type RoutedSlot } from '../../../src/reconciler/board.ts';
import { createRandom, type Random } from '../../support/simulation/seeded-random.ts';
import { boardSlot, PARK, slotName } from '../support/board-fixture.ts';

/** `SVC_TEST_SCALE=10` runs ten times as many. */
const WORLDS = Math.round(10_000 * Number(process.env['SVC_TEST_SCALE'] ?? 1));
const STEPS = 80;
const NAMES = ['a', 'b'] as const;
const MOST = [undefined, 1, 2, 5] as const;

/** States of both slots, prepared, because a spec takes long to parse. */
const STATES = NAMES.map((name) => [
  boardSlot({ name, admission: PARK }),
  ...MOST.flatMap((most) =>
    ['old', 'new'].map((workload) =>
      boardSlot({
        name,
        targets: [{ workload: `${name}-${workload}`, port: 1 }],
        ...(most === undefined ? {} : { limits: { maxInFlight: most } }),
      }),
    ),
  ),
]);

interface Asked {
  readonly slot: string;
  readonly claim: Claim;
  readonly number: number;
  ticket: Ticket | undefined;
  hold: Hold | undefined;
  ownWork: number;
  readonly others: Map<string, number>;
}

interface World {
  readonly random: Random;
  board: Board;
  traffic: GatewayTraffic;
  time: number;
  count: number;
  served: number;
  readonly asked: Set<Asked>;
  /** Work that a caller got last at a slot. */
  readonly last: Map<string, number>;
}

const keyOf = ({ slot, claim }: Asked): string => `${slot} ${claim.caller}`;
const waitingAt = (world: World, slot: string): readonly Asked[] =>
  [...world.asked].filter((each) => each.slot === slot && each.ticket !== undefined);

function begin(world: World): void {
  world.board = createBoard();
  world.traffic = createTraffic({ board: world.board, now: () => world.time, settings: { SVC_PARK_LIMIT: 1000, SVC_PARK_TIMEOUT: 1e9 } });
  publish(world);
}

function publish(world: World): void {
  const { random, board } = world;
  const version = board.current().version + 1;
  const states = STATES.map((each): BoardSlot | undefined => each[random.int(0, each.length - 1)]).filter((each) => each !== undefined);
  board.publish({ version, at: version, slots: new Map(states.map((slot) => [slot.name, slot])), names: new Map(), refused: new Map() });
}

/** As an exchange does. */
function enter(world: World, asked: Asked): void {
  const name = slotName(asked.slot);
  const slot = world.board.current().slots.get(name);
  if (slot?.admission.kind === 'open') hold(world, asked, slot);
  else park(world, asked);
}

function hold(world: World, asked: Asked, slot: RoutedSlot): void {
  asked.hold = world.traffic.holds.acquire(slot, { onStopping: () => undefined });
  if (asked.hold === undefined) return park(world, asked);
  const most = slot.spec.limits?.maxInFlight ?? Number.POSITIVE_INFINITY;
  const inFlight = world.traffic.holds.inFlight(slot.name);
  if (inFlight > most) throw new Error(`${inFlight} are in flight, of ${most}`);
  world.served += 1;
  noteServed(world, asked);
}

function noteServed(world: World, served: Asked): void {
  const { claim, ownWork, others } = served;
  const most = mostWorkBefore({ work: ownWork, weight: claim.weight }, [0]);
  for (const [caller, work] of others) {
    const weight = weightOf(caller);
    const bound = mostWorkBefore({ work: ownWork, weight: claim.weight }, [weight]) + 1e-6;
    if (work > bound) throw new Error(`"${caller}" got ${work} before "${claim.caller}", with a bound of ${Math.max(most, bound)}`);
  }
  for (const each of waitingAt(world, served.slot)) {
    if (each.claim.caller === claim.caller) {
      if (each.number < served.number) throw new Error(`${served.number} came before ${each.number} of the same caller`);
    } else each.others.set(claim.caller, (each.others.get(claim.caller) ?? 0) + claim.work);
  }
  world.last.set(keyOf(served), claim.work);
}

function park(world: World, asked: Asked): void {
  const before = waitingAt(world, asked.slot).filter((each) => each.claim.caller === asked.claim.caller);
  asked.ownWork = before.reduce((sum, { claim }) => sum + claim.work, world.last.get(keyOf(asked)) ?? 0);
  asked.others.clear();
  const waiter = {
    onOpen(slot: RoutedSlot) {
      asked.ticket = undefined;
      hold(world, asked, slot);
    },
    fail(code: string) {
      if (code !== 'slot.loading') throw new Error(`A request failed with ${code}`);
      asked.ticket = undefined;
    },
  };
  const entered = world.traffic.parking.enter(slotName(asked.slot), waiter, { deadline: 1e9, again: false, claim: asked.claim });
  if (entered.kind === 'refuse') throw new Error(entered.message);
  asked.ticket = entered;
}

const weightOf = (caller: string): number => 1 + (caller.length % 3);

function ask(world: World): void {
  const { random } = world;
  const caller = random.chance(0.6) ? 'flood' : (['x', 'yy', 'zzz'][random.int(0, 2)] ?? 'x');
  const claim: Claim = { caller, weight: weightOf(caller), priority: 'normal', work: random.chance(0.7) ? 1 : random.int(1, 16) };
  const asked: Asked = {
    slot: NAMES[random.int(0, 1)] ?? 'a',
    claim,
    number: (world.count += 1),
    ticket: undefined,
    hold: undefined,
    ownWork: 0,
    others: new Map(),
  };
  world.asked.add(asked);
  enter(world, asked);
}

/** One that is answered or leaves. */
function end(world: World, ended: Asked | undefined): void {
  if (ended === undefined) return;
  world.asked.delete(ended);
  ended.ticket?.leave();
  ended.ticket = undefined;
  ended.hold?.release();
}

/** All clients send their requests again. */
function restart(world: World): void {
  world.traffic.parking.close('The service is stopping');
  begin(world);
  for (const asked of world.asked) {
    asked.hold = undefined;
    enter(world, asked);
  }
}

/** No request waits for its turn at a slot that has room. */
function check(world: World): void {
  for (const slot of world.board.current().slots.values()) {
    const waiting = world.traffic.parking.waiting(slot.name);
    if (waiting !== waitingAt(world, slot.name).length) throw new Error(`${waiting} wait for "${slot.name}"`);
    if (slot.admission.kind === 'open' && waiting > 0 && !world.traffic.holds.isFull(slot)) throw new Error(`Slot "${slot.name}" has room`);
  }
}

function live(seed: number): World {
  const random = createRandom(seed);
  const board = createBoard();
  const settings = { SVC_PARK_LIMIT: 1000, SVC_PARK_TIMEOUT: 1e9 };
  const traffic = createTraffic({ board, now: () => 0, settings });
  const world: World = { random, board, traffic, time: 0, count: 0, served: 0, asked: new Set(), last: new Map() };
  begin(world);
  for (let step = 0; step < STEPS; step += 1) {
    const drawn = random.next();
    world.time += 100 * random.next();
    if (drawn < 0.5) ask(world);
    else if (drawn < 0.8)
      end(
        world,
        [...world.asked].find(({ hold: held }) => held !== undefined),
      );
    else if (drawn < 0.87) end(world, [...world.asked][random.int(0, world.asked.size)]);
    else if (drawn < 0.99) publish(world);
    else restart(world);
    check(world);
  }
  for (let turn = 0; world.asked.size > 0; turn += 1) {
    if (turn > 1000) throw new Error('Requests wait without end');
    publish(world);
    for (const asked of world.asked) if (asked.hold !== undefined) end(world, asked);
    check(world);
  }
  return world;
}

beforeAll(() => void jest.useFakeTimers());
afterAll(() => void jest.useRealTimers());

test(`${WORLDS} random worlds of swaps, memory turns, edits, cancelled requests and restarts keep the bound`, () => {
  let served = 0;
  for (let seed = 1; seed <= WORLDS; seed += 1) {
    try {
      served += live(seed).served;
    } catch (error) {
      throw new Error(`Seed ${seed}`, { cause: error });
    }
  }
  expect(served).toBeGreaterThan(10 * WORLDS);
});
