import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRandom } from '../../../chaos/support/random.ts';
import { hashText, mostInFlight, pickReplica, type Replica } from '../../../../src/gateway/route/decide/pick-replica.ts';

interface Named extends Replica {
  readonly name: string;
}

const replica = (name: string, inFlight = 0, pickedAt = 0, recent = 0): Named => ({
  name,
  hash: hashText(name),
  inFlight,
  pickedAt,
  recent,
});
const address = (index: number): string => `10.244.${Math.floor(index / 250)}.${1 + (index % 250)}:8080`;
const idle = (count: number): readonly Named[] => Array.from({ length: count }, (_, index) => replica(address(index)));
/** The first one got all of the latest requests. */
const skewed = <Each extends Named>(replicas: readonly Each[]): readonly Each[] =>
  replicas.map((one, index) => ({ ...one, recent: index === 0 ? 100 : 0 }));
const nameOf = (replicas: readonly Named[], conversation: string): string => pickReplica(replicas, conversation)?.name ?? '';
const CONVERSATIONS = Array.from({ length: 600 }, (_, index) => `conversation ${index}`);

describe('pickReplica()', () => {
  const CASES: readonly (readonly [string, Parameters<typeof pickReplica<Named>>, string | undefined])[] = [
    ['no replica', [[], 'x'], undefined],
    ['no replica and no conversation', [[], undefined], undefined],
    ['the only one, however busy', [[replica('a', 100)], 'x'], 'a'],
    ['without a conversation, the one with the fewest requests', [[replica('a', 2), replica('b', 1)], undefined], 'b'],
    ['without a conversation, of equal ones the one that waited longest', [[replica('a', 1, 8), replica('b', 1, 7)], undefined], 'b'],
    ['the other one once the first has no room', [[replica('a', 9), replica('b', 0)], 'x'], 'b'],
    ['the other one of two in the other order', [[replica('b', 0), replica('a', 9)], 'x'], 'b'],
  ];
  for (const [title, args, expected] of CASES)
    test(title, () => {
      expect(pickReplica(...args)?.name).toBe(expected);
    });

  test.each([
    [0, 3, 1, 1],
    [1, 3, 1, 2],
    [2, 3, 2, 3],
    [5, 3, 3, 4],
    [29, 3, 13, 16],
    [2999, 3, 1250, 1282],
    [99, 100, 2, 3],
  ])('of %i requests in flight on %i replicas, each has room for %i, or for %i if its share is even', (inFlight, replicas, most, even) => {
    expect([mostInFlight(inFlight, replicas, false), mostInFlight(inFlight, replicas, true)]).toEqual([most, even]);
  });

  test('a replica with more than its share of the latest requests has less room', () => {
    for (const each of CONVERSATIONS.slice(0, 50)) {
      const home = nameOf(idle(3), each);
      const busy = (recent: number) =>
        idle(3).map((one) => ({ ...one, inFlight: one.name === home ? 3 : 1, recent: one.name === home ? recent : 10 }));
      expect(nameOf(busy(14), each)).toBe(home);
      expect(nameOf(busy(15), each)).not.toBe(home);
    }
  });

  test('does not depend on the order of replicas, which gateways may see differently', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.string(), fc.nat(), (count, conversation, turn) => {
        const replicas = idle(count);
        const by = turn % count;
        expect(nameOf([...replicas.slice(by), ...replicas.slice(0, by)].toReversed(), conversation)).toBe(nameOf(replicas, conversation));
      }),
    );
  });

  test('spreads conversations over the replicas evenly', () => {
    for (const count of [2, 3, 7, 20]) {
      const shares = new Map<string, number>();
      const replicas = idle(count);
      for (const each of CONVERSATIONS) shares.set(nameOf(replicas, each), (shares.get(nameOf(replicas, each)) ?? 0) + 1);
      expect(shares.size).toBe(count);
      const mean = CONVERSATIONS.length / count;
      for (const share of shares.values()) expect(Math.abs(share - mean)).toBeLessThan(5 * Math.sqrt(mean));
    }
  });

  test('moves only the share of a replica that comes or goes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 12 }), fc.nat(), (count, which) => {
        const all = idle(count);
        const gone = all[which % count]?.name;
        const left = all.filter(({ name }) => name !== gone);
        let moved = 0;
        for (const each of CONVERSATIONS) {
          const before = nameOf(all, each);
          if (before === gone) moved += 1;
          else expect(nameOf(left, each)).toBe(before);
        }
        const share = CONVERSATIONS.length / count;
        expect(Math.abs(moved - share)).toBeLessThan(6 * Math.sqrt(share));
      }),
      { numRuns: 20 },
    );
  });

  /** Conversations as clients hold them: each sends its next turn as soon as one of its turns has ended. Returns requests of each replica, and turns at home. */
  function simulate(count: number, clients: number, random: () => number) {
    const replicas = idle(count).map((one) => ({ ...one, inFlight: 0, recent: 0, served: 0 }));
    const running: { readonly by: (typeof replicas)[number]; readonly conversation: string; readonly turn: number }[] = [];
    let [requests, atHome] = [0, 0];
    const send = (conversation: string, turn: number): void => {
      const picked = pickReplica(replicas, conversation);
      if (picked === undefined) throw new Error('No replica');
      for (const one of replicas) one.recent *= 0.995;
      picked.inFlight += 1;
      picked.recent += 1;
      picked.served += 1;
      requests += 1;
      if (picked.name === nameOf(idle(count), conversation)) atHome += 1;
      running.push({ by: picked, conversation, turn });
    };
    const begin = (): void => send(`${random()}`, 1);
    for (let client = 0; client < clients; client += 1) begin();
    while (requests < 3000) {
      const [ended] = running.splice(random() % running.length, 1);
      if (ended === undefined) throw new Error('Nothing runs');
      ended.by.inFlight -= 1;
      if (ended.turn < 8) send(ended.conversation, ended.turn + 1);
      else begin();
    }
    return { served: replicas.map(({ served }) => served), atHome: atHome / requests };
  }

  test('keeps turns at home and the load even, whatever conversations there are at once', () => {
    const seeded = createRandom(1);
    for (const count of [2, 3, 8]) {
      for (const clients of [1, 4, 12, 60]) {
        const { served, atHome } = simulate(count, clients, () => seeded.integer(2 ** 30));
        // Some of few conversations meet on one of many replicas.
        expect(atHome).toBeGreaterThan(count > 3 ? 0.85 : 0.95);
        expect(Math.max(...served) / (3000 / count)).toBeLessThan(1.25);
      }
    }
  });

  test('never fills a replica above its room, whatever comes and ends', () => {
    const action = fc.record({ conversation: fc.nat({ max: 5 }), ends: fc.boolean(), which: fc.nat() });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.array(action, { maxLength: 150 }), fc.boolean(), (count, actions, isEven) => {
        const loads = Array.from({ length: count }, () => 0);
        const held: number[] = [];
        for (const { conversation, ends, which } of actions) {
          if (ends) {
            const [index] = held.splice(which % Math.max(1, held.length), 1);
            if (index !== undefined) loads[index] = (loads[index] ?? 0) - 1;
            continue;
          }
          const even = loads.map((inFlight, index) => ({ ...replica(address(index), inFlight, 0, 1), index }));
          const picked = (isEven ? pickReplica(even, `c${conversation}`) : pickReplica(skewed(even), `c${conversation}`))?.index ?? -1;
          loads[picked] = (loads[picked] ?? 0) + 1;
          held.push(picked);
          const mean = held.length / count;
          const isBounded = loads.length > 1 && !isEven && picked === 0;
          expect(loads[picked]).toBeLessThanOrEqual(Math.ceil(1.25 * mean + (isBounded ? 0 : Math.sqrt(mean))));
        }
      }),
    );
  });

  test('sends what a replica has no room for to one and the same other replica', () => {
    for (const each of CONVERSATIONS.slice(0, 100)) {
      const full = idle(5).map((one) => (one.name === nameOf(idle(5), each) ? { ...one, inFlight: 50 } : one));
      const without = full.filter(({ inFlight }) => inFlight === 0);
      expect(nameOf(full, each)).toBe(nameOf(without, each));
    }
  });
});
