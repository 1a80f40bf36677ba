import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HOST, type MemoryPool } from '../../../../src/reconciler/decide/facts/memory-pools.ts';
import { shareMemory, type MemoryClaim } from '../../../../src/reconciler/decide/rules/share-memory.ts';
import { turnOf } from '../../../../src/reconciler/decide/rules/memory-turns.ts';
import { slotName } from '../../../support/simulation/world.ts';

const NOW = 100_000;

/** A slot in a few words; its turn ended long ago unless it says since when it passes. */
interface Words {
  readonly priority?: number;
  readonly bytes?: number;
  readonly onDemand?: boolean;
  readonly busy?: boolean;
  readonly incumbent?: boolean;
  readonly lastActiveAt?: number;
  readonly passingSince?: number;
  readonly waitingSince?: number;
  readonly reloadBytes?: number;
  readonly isAhead?: boolean;
}

function claim(name: string, words: Words = {}): MemoryClaim {
  const { priority = 0, bytes = 10, onDemand = false, busy = false, incumbent = false, lastActiveAt = 0, passingSince = 0 } = words;
  const demand = { hostBytes: bytes, deviceBytes: 0 };
  return {
    slot: slotName(name),
    priority,
    turn: turnOf({
      onDemand,
      busy,
      incumbent,
      passingSince,
      lastActiveAt,
      isAhead: words.isAhead ?? false,
      waitingSince: words.waitingSince,
      startedAt: 0,
      now: NOW,
    }),
    busy,
    incumbent,
    waitingSince: words.waitingSince,
    reloadBytes: words.reloadBytes ?? bytes,
    lastActiveAt,
    held: incumbent ? { [HOST]: bytes } : undefined,
    needs: { demand, pools: { own: [], dedicated: [] }, gpus: undefined },
  };
}

const hostOf = (budgetBytes: number | undefined, othersBytes = 0): readonly MemoryPool[] => [{ id: HOST, budgetBytes, othersBytes }];

const admitted = (claims: readonly MemoryClaim[], budget: number | undefined): string[] =>
  [...shareMemory(claims, hostOf(budget)).verdicts].flatMap(([slot, verdict]) => (verdict.admitted ? [slot] : [])).sort();

const waits = (claims: readonly MemoryClaim[], budget = 15): boolean | undefined =>
  shareMemory(claims, hostOf(budget)).verdicts.get(slotName('b'))?.mayWait;

describe('shareMemory()', () => {
  test('admits everything without a budget', () => {
    expect(admitted([claim('a'), claim('b', { bytes: 1e15 })], undefined)).toEqual(['a', 'b']);
  });

  test('prefers the higher priority', () => {
    expect(admitted([claim('a', { incumbent: true }), claim('b', { priority: 1 })], 15)).toEqual(['b']);
  });

  describe('gives a slot that is loaded ahead of requests', () => {
    const ahead = (words: Words = {}) => claim('a', { onDemand: true, isAhead: true, priority: 9, ...words });
    test.each<[string, readonly MemoryClaim[], readonly string[]]>([
      ['what is free', [ahead(), claim('b', { bytes: 5, incumbent: true })], ['a', 'b']],
      ['nothing that an idle slot holds', [ahead(), claim('b', { onDemand: true, incumbent: true })], ['b']],
      ['nothing that a slot wants that is always loaded', [ahead({ incumbent: true }), claim('b')], ['b']],
      ['no place before a request', [ahead({ incumbent: true }), claim('b', { onDemand: true, busy: true, waitingSince: NOW })], ['b']],
      [
        'no time to finish loading',
        [ahead({ incumbent: true, passingSince: NOW }), claim('b', { onDemand: true, busy: true, waitingSince: NOW })],
        ['b'],
      ],
      [
        'its place before others that are ahead and do not run',
        [ahead({ incumbent: true, priority: 0 }), claim('b', { onDemand: true, isAhead: true })],
        ['a'],
      ],
      [
        'its place after others of higher priority',
        [ahead({ priority: 0 }), claim('b', { onDemand: true, isAhead: true, priority: 1 })],
        ['b'],
      ],
    ])('%s', (_, claims, expected) => {
      expect(admitted(claims, 15)).toEqual(expected);
    });
  });

  test('prefers a running slot among equals', () => {
    expect(admitted([claim('a'), claim('b', { incumbent: true })], 15)).toEqual(['b']);
  });

  const serves = { incumbent: true, onDemand: true, busy: true } as const;
  const asked = { onDemand: true, busy: true } as const;
  const loadedFor = (ms: number): Words => ({ ...serves, passingSince: NOW - ms });

  test('lets a requested slot come before an idle on-demand slot', () => {
    expect(admitted([claim('a', { incumbent: true, onDemand: true }), claim('b', asked)], 15)).toEqual(['b']);
  });

  test('says to whom a slot gives way, and for whose request', () => {
    const newcomer = { ...claim('b', asked), caller: 'token:1' };
    const to = (claims: readonly MemoryClaim[], slot: string, budget = 15) =>
      shareMemory(claims, hostOf(budget)).verdicts.get(slotName(slot))?.givesWayTo;
    const idle = claim('a', { incumbent: true, onDemand: true });
    expect(to([idle, newcomer], 'a')).toEqual({ slot: 'b', caller: 'token:1' });
    expect(to([idle, claim('b', { priority: 1 })], 'a')).toEqual({ slot: 'b', caller: undefined });
    // The last one that takes memory is the one for which there is none left.
    const second = { ...claim('c', { ...asked, bytes: 5 }), caller: 'token:2', waitingSince: 1 };
    expect(to([idle, newcomer, second], 'a', 24)).toEqual({ slot: 'c', caller: 'token:2' });
    expect(to([idle, newcomer], 'b')).toBeUndefined();
    expect(to([claim('a', loadedFor(29_999)), newcomer], 'b')).toBeUndefined();
    // Nobody has come: the budget was lowered.
    expect(to([idle], 'a', 5)).toBeUndefined();
  });

  test('lets an idle slot of higher priority give way to a request, which nobody else would serve', () => {
    expect(admitted([claim('a', { incumbent: true, onDemand: true, priority: 5 }), claim('b', asked)], 15)).toEqual(['b']);
    expect(admitted([claim('a', { ...serves, priority: 5 }), claim('b', asked)], 15)).toEqual(['a']);
  });

  test('lets a slot with requests keep its memory until its turn ends', () => {
    // The load took from 0 until then, which is more than the longest turn of 30 s.
    expect(admitted([claim('a', loadedFor(29_999)), claim('b', asked)], 15)).toEqual(['a']);
    expect(admitted([claim('a', loadedFor(30_000)), claim('b', asked)], 15)).toEqual(['b']);
  });

  test('lets it keep its memory during a short pause between requests as well', () => {
    const paused = (ms: number): Words => ({ incumbent: true, onDemand: true, passingSince: NOW - 20_000, lastActiveAt: NOW - ms });
    expect(admitted([claim('a', paused(7499)), claim('b', asked)], 15)).toEqual(['a']);
    expect(admitted([claim('a', paused(7500)), claim('b', asked)], 15)).toEqual(['b']);
  });

  test('says when a turn ends, where somebody waits for that', () => {
    const running = claim('a', { ...serves, passingSince: NOW - 10_000 });
    expect(shareMemory([running, claim('b', asked)], hostOf(15)).changesAt).toBe(NOW + 20_000);
    expect(shareMemory([running, claim('b', asked)], hostOf(20)).changesAt).toBeUndefined();
  });

  test('gives the next turn to the slot whose requests have waited longest', () => {
    const [b, c] = [claim('b', { ...asked, waitingSince: 2 }), claim('c', { ...asked, waitingSince: 1 })];
    expect(admitted([claim('a', serves), b, c], 15)).toEqual(['c']);
  });

  test('starts nothing small before a large one that waits for its turn', () => {
    const large = claim('b', { ...asked, bytes: 15, waitingSince: 1 });
    const small = claim('c', { ...asked, bytes: 3, waitingSince: 2 });
    expect(admitted([claim('a', { ...serves, passingSince: NOW - 1 }), large, small], 15)).toEqual(['a']);
    expect(admitted([claim('a', serves), large, small], 15)).toEqual(['b']);
  });
  test('starts nothing small in the place of a slot that is always loaded and gives way', () => {
    const always = claim('always', { bytes: 95, priority: 1, incumbent: true });
    const turn = claim('turn', { bytes: 5, onDemand: true, busy: true, incumbent: true, passingSince: NOW - 10 });
    const first = claim('first', { bytes: 3, priority: 2, onDemand: true, busy: true, waitingSince: NOW });
    const later = claim('later', { bytes: 92, onDemand: true, busy: true, waitingSince: NOW });
    const { verdicts } = shareMemory([always, turn, first, later], hostOf(100));
    expect([...verdicts].map(([slot, verdict]) => [slot, verdict.admitted, verdict.keptFor])).toContainEqual(['later', false, 'always']);
  });

  test('prefers the higher priority among those that wait, unless another one has waited for 30 s', () => {
    const high = claim('high', { ...asked, priority: 1, waitingSince: NOW - 1 });
    const low = (ms: number): MemoryClaim => claim('low', { ...asked, waitingSince: NOW - ms });
    expect(admitted([claim('a', serves), high, low(29_999)], 15)).toEqual(['high']);
    expect(admitted([claim('a', serves), high, low(30_000)], 15)).toEqual(['low']);
    expect(admitted([claim('a', { ...serves, priority: 2 }), high, low(29_999)], 15)).toEqual(['a']);
    expect(admitted([claim('a', { ...serves, priority: 2 }), high, low(30_000)], 15)).toEqual(['low']);
  });

  test('lets a turn end before a slot of higher priority loads on demand, but not before one that is always loaded', () => {
    const running = claim('a', { ...serves, passingSince: NOW - 1 });
    expect(admitted([running, claim('b', { ...asked, priority: 1 })], 15)).toEqual(['a']);
    expect(admitted([running, claim('b', { priority: 1 })], 15)).toEqual(['b']);
  });

  test('takes an idle slot that is loaded fast before one that is used more often', () => {
    const idle = (name: string, words: Words): MemoryClaim => claim(name, { incumbent: true, onDemand: true, ...words });
    const slow = idle('slow', { reloadBytes: 1e9 });
    expect(admitted([slow, idle('fast', { reloadBytes: 1, lastActiveAt: 5 }), claim('b', asked)], 25)).toEqual(['b', 'slow']);
    expect(admitted([idle('older', {}), idle('newer', { lastActiveAt: 5 }), claim('b', asked)], 25)).toEqual(['b', 'newer']);
    expect(admitted([idle('low', { reloadBytes: 1e9 }), idle('high', { priority: 1 }), claim('b', asked)], 25)).toEqual(['b', 'high']);
  });

  test('says that waiting helps when the others release their memory automatically', () => {
    expect(waits([claim('a', { ...serves, passingSince: NOW }), claim('b')])).toBe(true);
    expect(waits([claim('a', { ...serves, onDemand: false }), claim('b')])).toBe(false);
    expect(waits([claim('a', { ...serves, priority: 1 }), claim('b')])).toBe(true);
  });

  test('lets what runs keep its memory whatever other programs use, and starts nothing that does not fit beside them', () => {
    const decide = (claims: readonly MemoryClaim[]) => shareMemory(claims, hostOf(20, 8)).verdicts;
    const both = decide([claim('a', { incumbent: true }), claim('b')]);
    expect([...both.values()].map((verdict) => verdict.admitted)).toEqual([true, false]);
    expect(both.get(slotName('b'))).toMatchObject({ mayWait: true, othersBytes: 8 });
    expect(decide([claim('a', { incumbent: true, bytes: 20 })]).get(slotName('a'))?.admitted).toBe(true);
  });

  test('waits for memory that other programs use', () => {
    expect(shareMemory([claim('b', { bytes: 15 })], hostOf(20, 8)).verdicts.get(slotName('b'))).toMatchObject({
      admitted: false,
      mayWait: true,
    });
  });

  test('says for which slot memory is kept, where there is room and another one comes first', () => {
    const asked = { onDemand: true, busy: true } as const;
    const running = claim('a', { ...asked, incumbent: true, passingSince: NOW - 10, bytes: 8 });
    const decide = (bytes: number) =>
      shareMemory(
        [running, claim('b', { ...asked, waitingSince: 1, bytes: 12 }), claim('c', { ...asked, waitingSince: 2, bytes })],
        hostOf(15),
      ).verdicts;
    expect(decide(5).get(slotName('c'))).toMatchObject({ admitted: false, neededBytes: 5, aheadBytes: 8, keptFor: 'b' });
    expect(decide(5).get(slotName('b'))).not.toHaveProperty('keptFor');
    expect(decide(8).get(slotName('c'))).not.toHaveProperty('keptFor');
  });

  test('reports its numbers, and every slot that shares the memory', () => {
    const { verdicts } = shareMemory([claim('a', { priority: 2 }), claim('b')], hostOf(15));
    const same = { bytes: 10, incumbent: false, group: 'always' };
    expect(verdicts.get(slotName('b'))).toEqual({
      admitted: false,
      mayWait: false,
      bytes: 10,
      placement: { host: 10 },
      pool: HOST,
      neededBytes: 10,
      budgetBytes: 15,
      othersBytes: 0,
      aheadBytes: 10,
      ahead: ['a'],
      candidates: [
        { ...same, slot: 'b', priority: 0, admitted: false },
        { ...same, slot: 'a', priority: 2, admitted: true },
      ],
    });
  });

  const claims = fc.uniqueArray(
    fc.record({
      slot: fc.integer({ min: 0, max: 30 }).map((id) => `s${id}`),
      priority: fc.integer({ min: -2, max: 2 }),
      bytes: fc.nat({ max: 100 }),
      onDemand: fc.boolean(),
      busy: fc.boolean(),
      incumbent: fc.boolean(),
      lastActiveAt: fc.constantFrom(0, 1, NOW - 100, NOW),
      passingSince: fc.constantFrom(0, NOW - 40_000, NOW - 10),
      waitingSince: fc.nat({ max: 3 }),
    }),
    { selector: ({ slot }) => slot, maxLength: 12 },
  );
  const claimsOf = (words: readonly (Words & { readonly slot: string })[]): readonly MemoryClaim[] =>
    words.map(({ slot, ...each }) => claim(slot, each));

  test('never promises more than the budget, and takes no memory from a running slot that nobody needs', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (words, budget) => {
        const all = claimsOf(words);
        const { verdicts, admitted: sum } = shareMemory(all, hostOf(budget));
        expect(verdicts.size).toBe(all.length);
        expect(sum[HOST] ?? 0).toBeLessThanOrEqual(budget);
        for (const { slot, incumbent } of all) {
          const verdict = verdicts.get(slot);
          if (verdict?.admitted === false && incumbent) expect((sum[HOST] ?? 0) + verdict.bytes).toBeGreaterThan(budget);
        }
      }),
    );
  });

  test('does not depend on the order of the claims', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (words, budget) => {
        const all = claimsOf(words);
        expect(admitted(all.toReversed(), budget)).toEqual(admitted(all, budget));
      }),
    );
  });

  test('takes nothing back from a slot that was asked for and has just been given memory', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (words, budget) => {
        const first = new Set(admitted(claimsOf(words), budget));
        // What was admitted is loaded now; the requests of the others wait, since just now.
        const next = words.map((each) => {
          const incumbent = first.has(each.slot);
          return incumbent === each.incumbent ? each : { ...each, incumbent, passingSince: NOW, waitingSince: NOW };
        });
        const second = admitted(claimsOf(next), budget);
        for (const { slot, busy, onDemand, incumbent } of words)
          if (!incumbent && first.has(slot) && busy && onDemand) expect(second).toContain(slot);
      }),
    );
  });
});
