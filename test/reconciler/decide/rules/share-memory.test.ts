import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { shareMemory, type MemoryClaim } from '../../../../src/reconciler/decide/rules/share-memory.ts';
import { slotName } from '../../../support/simulation/world.ts';

const claim = (name: string, part: Partial<MemoryClaim> = {}): MemoryClaim => ({
  slot: slotName(name),
  priority: 0,
  bytes: 10,
  onDemand: false,
  busy: false,
  incumbent: false,
  lastActiveAt: 0,
  ...part,
});

const admitted = (claims: readonly MemoryClaim[], budget: number | undefined): string[] =>
  [...shareMemory(claims, budget).verdicts].flatMap(([slot, verdict]) => (verdict.admitted ? [slot] : [])).sort();

describe('shareMemory()', () => {
  test('admits everything without a budget', () => {
    expect(admitted([claim('a'), claim('b', { bytes: 1e15 })], undefined)).toEqual(['a', 'b']);
  });

  test('prefers the higher priority', () => {
    expect(admitted([claim('a', { incumbent: true }), claim('b', { priority: 1 })], 15)).toEqual(['b']);
  });

  test('prefers a running slot among equals', () => {
    expect(admitted([claim('a'), claim('b', { incumbent: true })], 15)).toEqual(['b']);
  });

  test('lets a requested slot come before an idle on-demand slot', () => {
    const idle = claim('a', { incumbent: true, onDemand: true });
    expect(admitted([idle, claim('b', { onDemand: true, busy: true })], 15)).toEqual(['b']);
    expect(admitted([{ ...idle, busy: true }, claim('b', { onDemand: true, busy: true })], 15)).toEqual(['a']);
  });

  test('says that waiting helps when the others release their memory automatically', () => {
    const waits = (other: Partial<MemoryClaim>): boolean | undefined =>
      shareMemory([claim('a', { incumbent: true, busy: true, ...other }), claim('b')], 15).verdicts.get(slotName('b'))?.mayWait;
    expect(waits({ onDemand: true })).toBe(true);
    expect(waits({ onDemand: false })).toBe(false);
    expect(waits({ onDemand: true, priority: 1 })).toBe(false);
  });

  test('reports its numbers', () => {
    const { verdicts } = shareMemory([claim('a', { priority: 2 }), claim('b')], 15);
    expect(verdicts.get(slotName('b'))).toEqual({
      admitted: false,
      mayWait: false,
      bytes: 10,
      budgetBytes: 15,
      aheadBytes: 10,
      ahead: ['a'],
    });
  });

  const claims = fc.uniqueArray(
    fc.record({
      slot: fc.integer({ min: 0, max: 30 }).map((id) => slotName(`s${id}`)),
      priority: fc.integer({ min: -2, max: 2 }),
      bytes: fc.nat({ max: 100 }),
      onDemand: fc.boolean(),
      busy: fc.boolean(),
      incumbent: fc.boolean(),
      lastActiveAt: fc.nat({ max: 5 }),
    }),
    { selector: ({ slot }) => slot, maxLength: 12 },
  );

  test('never promises more than the budget, and wastes nothing that a claim could use', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (all, budget) => {
        const { verdicts, admittedBytes } = shareMemory(all, budget);
        expect(verdicts.size).toBe(all.length);
        expect(admittedBytes).toBeLessThanOrEqual(budget);
        for (const { slot, bytes } of all) {
          if (verdicts.get(slot)?.admitted === false) expect(admittedBytes + bytes).toBeGreaterThan(budget);
        }
      }),
    );
  });

  test('does not depend on the order of the claims', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (all, budget) => {
        expect(admitted(all.toReversed(), budget)).toEqual(admitted(all, budget));
      }),
    );
  });

  test('decides the same once its decision has taken effect', () => {
    fc.assert(
      fc.property(claims, fc.nat({ max: 300 }), (all, budget) => {
        const first = admitted(all, budget);
        const carriedOut = all.map((each) => ({ ...each, incumbent: first.includes(each.slot) }));
        expect(admitted(carriedOut, budget)).toEqual(first);
      }),
    );
  });
});
