/** Random callers that flood, come now and then, leave, and change their weights: whatever they do, the bound holds. */
import { describe, expect, test } from '@jest/globals';
import { createFairQueue, type Place } from '../../../src/gateway/traffic/fair-queue.ts';
import { estimateWork, MOST_WORK, mostTurns, mostWorkBefore, TURNS, type Claim } from '../../../src/gateway/traffic/decide/turns.ts';
import { PRIORITIES, type Priority } from '../../../src/schema/words/access.ts';
import { createRandom, type Random } from '../../support/simulation/seeded-random.ts';

/** `SVC_TEST_SCALE=10` runs ten times as many. */
const WORLDS = Math.round(10_000 * Number(process.env['SVC_TEST_SCALE'] ?? 1));

interface Asked {
  readonly claim: Claim;
  readonly number: number;
  readonly place: Place;
  /** Work of its caller that is served before it: what waited when it came, and what was served last. */
  ownWork: number;
  /** The least weight of its caller since then. */
  weight: number;
  /** Work that others of its class got while it waited, and their greatest weights. */
  readonly others: Map<string, { work: number; weight: number }>;
  /** Turns of its class, and of all, while it waited. */
  classTurns: number;
  turns: number;
}

interface World {
  readonly random: Random;
  readonly queue: ReturnType<typeof createFairQueue<number>>;
  readonly waiting: Map<number, Asked>;
  readonly lastServed: Map<string, Claim>;
  readonly weights: Map<string, number>;
  count: number;
}

const keyOf = ({ caller, priority }: Claim): string => `${priority} ${caller}`;
const isBehind = (one: Asked, other: Asked): boolean => keyOf(one.claim) === keyOf(other.claim) && one.number > other.number;

function ask(world: World): void {
  const { random, queue, waiting, lastServed, weights } = world;
  const caller = random.chance(0.5) ? 'flood' : `caller ${random.int(1, 5)}`;
  const priority: Priority = random.chance(0.7) ? 'normal' : random.pick(PRIORITIES);
  const weight = weights.get(caller) ?? random.int(1, random.chance(0.5) ? 3 : 100);
  weights.set(caller, weight);
  const work = random.chance(0.6) ? 1 : 1 + random.next() * (MOST_WORK - 1);
  const claim = { caller, priority, weight, work };
  const number = (world.count += 1);
  const own = [...waiting.values()].filter((each) => keyOf(each.claim) === keyOf(claim)).map((each) => each.claim);
  const last = lastServed.get(keyOf(claim));
  const before = last === undefined ? own : [...own, last];
  waiting.set(number, {
    claim,
    number,
    place: queue.add(number, claim),
    ownWork: before.reduce((sum, each) => sum + each.work, 0),
    weight: Math.min(weight, ...before.map((each) => each.weight)),
    others: new Map(),
    classTurns: 0,
    turns: 0,
  });
}

function leave(world: World, left: Asked): void {
  left.place.leave();
  left.place.leave();
  world.waiting.delete(left.number);
}

function serve({ queue, waiting, lastServed }: World): void {
  const number = queue.take();
  const served = number === undefined ? undefined : waiting.get(number);
  if ((number === undefined) !== (waiting.size === 0) || (number !== undefined && served === undefined))
    throw new Error(`${String(number)} was served, and ${waiting.size} wait`);
  if (served === undefined) return;
  waiting.delete(served.number);
  checkBound(served);
  const { claim } = served;
  for (const each of waiting.values()) {
    if (isBehind(served, each)) throw new Error(`${served.number} was served before ${each.number} of the same caller`);
    each.turns += 1;
    if (each.claim.priority !== claim.priority) continue;
    each.classTurns += 1;
    if (each.claim.caller === claim.caller) continue;
    const { work, weight } = each.others.get(claim.caller) ?? { work: 0, weight: 0 };
    each.others.set(claim.caller, { work: work + claim.work, weight: Math.max(weight, claim.weight) });
  }
  lastServed.set(keyOf(claim), claim);
}

function checkBound({ claim, ownWork, weight, others, classTurns, turns }: Asked): void {
  for (const [caller, other] of others) {
    const most = mostWorkBefore({ work: ownWork, weight }, [other.weight]) + 1e-6;
    if (other.work > most) throw new Error(`${caller} got ${other.work} before ${JSON.stringify(claim)}, with a bound of ${most}`);
  }
  const most = mostTurns(classTurns + 1, claim.priority);
  if (turns + 1 > most) throw new Error(`${turns + 1} turns for ${classTurns + 1} of "${claim.priority}", with a bound of ${most}`);
}

function live(seed: number): World {
  const random = createRandom(seed);
  const world: World = { random, queue: createFairQueue(), waiting: new Map(), lastServed: new Map(), weights: new Map(), count: 0 };
  const busy = 0.2 + 0.5 * random.next();
  for (let step = 0; step < 120; step += 1) {
    const drawn = random.next();
    if (drawn < busy) ask(world);
    else if (drawn < 0.9) serve(world);
    else if (drawn < 0.97) {
      const left = [...world.waiting.values()][random.int(0, world.waiting.size)];
      if (left !== undefined) leave(world, left);
    } else if (drawn < 0.99) world.weights.clear();
    else for (const each of world.waiting.values()) if (random.chance(0.8)) leave(world, each);
    if (world.queue.size() !== world.waiting.size) throw new Error(`${world.queue.size()} instead of ${world.waiting.size} wait`);
  }
  while (world.waiting.size > 0) serve(world);
  serve(world);
  return world;
}

describe(`${WORLDS} random worlds`, () => {
  test('keep the bound for every request, lose none, and keep the order of each caller', () => {
    expect.assertions(1);
    for (let seed = 1; seed <= WORLDS; seed += 1) {
      try {
        const remembered = live(seed).queue.callers();
        if (remembered > 0) throw new Error(`${remembered} callers are remembered`);
      } catch (error) {
        throw new Error(`Seed ${seed}`, { cause: error });
      }
    }
    expect(WORLDS).toBeGreaterThan(0);
  });
});

const claim = (caller: string, more: Partial<Claim> = {}): Claim => ({ caller, weight: 1, priority: 'normal', work: 1, ...more });

function takeAll<Item>(queue: ReturnType<typeof createFairQueue<Item>>): readonly Item[] {
  return Array.from({ length: queue.size() }, () => queue.take()).flatMap((item) => (item === undefined ? [] : [item]));
}

describe('createFairQueue()', () => {
  test('serves one caller after the other, whoever came first with how many', () => {
    const queue = createFairQueue<string>();
    for (const item of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(item, claim(item.slice(0, 1)));
    expect(queue.inOrder()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
    expect(takeAll(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('gives shares by weight, of work and not of requests', () => {
    const queue = createFairQueue<string>();
    for (let index = 0; index < 40; index += 1) {
      queue.add('heavy', claim('heavy', { weight: 3 }));
      queue.add('light', claim('light'));
      queue.add('long', claim('long', { work: 4 }));
    }
    const first = Array.from({ length: 34 }, () => queue.take());
    const count = (name: string): number => first.filter((each) => each === name).length;
    expect([count('heavy'), count('light'), count('long')]).toEqual([24, 8, 2]);
  });

  test('nobody who asks again and again comes before one who waits', () => {
    const queue = createFairQueue<string>();
    queue.add('first', claim('patient', { work: 16 }));
    queue.add('second', claim('patient'));
    queue.take();
    const served: (string | undefined)[] = [];
    while (!served.includes('second') && served.length < 100) {
      queue.add('eager', claim('eager'));
      served.push(queue.take());
    }
    expect(served).toHaveLength(1 + MOST_WORK);
  });

  test('higher classes come first, and the lowest gets one of 20 turns', () => {
    const queue = createFairQueue<Priority>();
    for (const priority of PRIORITIES) for (let index = 0; index < 1000; index += 1) queue.add(priority, claim('a', { priority }));
    const served = Array.from({ length: 1000 }, () => queue.take());
    for (let start = 0; start + TURNS <= served.length; start += 1)
      for (const priority of PRIORITIES) expect(served.slice(start, start + TURNS)).toContain(priority);
    expect(served.filter((each) => each === 'high').length).toBeGreaterThanOrEqual(890);
  });

  test('100,000 callers come, half of them leave, and the others are served once each; nothing of them is kept', () => {
    const queue = createFairQueue<number>();
    const places = Array.from({ length: 100_000 }, (_, index) => queue.add(index, claim(`caller ${index}`)));
    for (const [index, place] of places.entries()) if (index % 2 === 0) place.leave();
    expect([queue.size(), queue.callers()]).toEqual([50_000, 50_000]);
    expect(queue.inOrder()).toEqual(Array.from({ length: 50_000 }, (_, index) => 2 * index + 1));
    expect(new Set(takeAll(queue)).size).toBe(50_000);
    expect([queue.size(), queue.callers(), queue.take()]).toEqual([0, 0, undefined]);
  });

  test('a flood of one caller is taken and cancelled without searching', () => {
    const queue = createFairQueue<number>();
    const places = Array.from({ length: 200_000 }, (_, index) => queue.add(index, claim('flood')));
    for (const place of places.slice(100_000).toReversed()) place.leave();
    expect(takeAll(queue)).toEqual(Array.from({ length: 100_000 }, (_, index) => index));
  });
});

test.each([
  [0, 1],
  [16_384, 2],
  [10 ** 9, MOST_WORK],
])('a body of %d bytes is estimated as %d of work', (bytes, work) => expect(estimateWork(bytes)).toBe(work));
