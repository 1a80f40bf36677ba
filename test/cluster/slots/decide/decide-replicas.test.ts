import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideReplicas, type Autoscale, type Need } from '../../../../src/cluster/slots/decide/decide-replicas.ts';

const AUTOSCALE: Autoscale = { min: 1, max: 5, inFlight: 4, windowMs: 60_000 };

/** Runs the decisions one after the other. Returns the number of replicas after each. */
function simulate(autoscale: Autoscale, start: number, samples: readonly { readonly at: number; readonly requests: number }[]) {
  let replicas = start;
  let needs: readonly Need[] | undefined;
  return samples.map(({ at, requests }) => {
    ({ replicas, needs } = decideReplicas(autoscale, { now: at, replicas, requests }, needs));
    return { at, requests, replicas, needs };
  });
}

const samplesOf = fc
  .array(fc.record({ after: fc.integer({ min: 1, max: 30_000 }), requests: fc.nat({ max: 30 }) }), { minLength: 1, maxLength: 80 })
  .map((steps) => {
    let at = 0;
    return steps.map(({ after, requests }) => ({ at: (at += after), requests }));
  });
const autoscaleOf = fc
  .record({
    min: fc.nat({ max: 4 }),
    more: fc.nat({ max: 6 }),
    inFlight: fc.integer({ min: 1, max: 8 }),
    windowMs: fc.constantFrom(0, 20_000, 120_000),
  })
  .map(({ min, more, inFlight, windowMs }): Autoscale => ({ min, max: Math.max(1, min + more), inFlight, windowMs }));

describe('decideReplicas()', () => {
  const CASES: readonly (readonly [string, Partial<Autoscale>, number, readonly (readonly [number, number])[], readonly number[]])[] = [
    ['stays at its minimum without requests', {}, 1, [[0, 0]], [1]],
    ['adds as many as the requests need, at once', {}, 1, [[0, 9]], [3]],
    ['adds no more than its maximum', {}, 1, [[0, 900]], [5]],
    [
      'removes none before the window is over',
      {},
      1,
      [
        [0, 9],
        [59_999, 0],
      ],
      [3, 3],
    ],
    [
      'removes them after the window',
      {},
      1,
      [
        [0, 9],
        [60_000, 0],
      ],
      [3, 1],
    ],
    [
      'keeps what the last peak within the window needed',
      {},
      1,
      [
        [0, 20],
        [30_000, 9],
        [61_000, 0],
        [90_000, 0],
      ],
      [5, 5, 3, 1],
    ],
    [
      'removes none at the first look of a new leader',
      {},
      4,
      [
        [0, 0],
        [59_000, 0],
        [60_000, 0],
      ],
      [4, 4, 1],
    ],
    [
      'comes back from zero with the first request',
      { min: 0 },
      0,
      [
        [0, 0],
        [1000, 1],
      ],
      [0, 1],
    ],
    [
      'goes to zero after the window',
      { min: 0 },
      1,
      [
        [0, 1],
        [1000, 0],
        [60_000, 0],
      ],
      [1, 1, 0],
    ],
    ['follows limits that were changed', { min: 2, max: 3 }, 9, [[0, 0]], [3]],
    [
      'removes at once without a window',
      { windowMs: 0 },
      1,
      [
        [0, 20],
        [1, 0],
      ],
      [5, 1],
    ],
  ];
  test.each(CASES)('%s', (_title, change, start, samples, expected) => {
    const seen = simulate(
      { ...AUTOSCALE, ...change },
      start,
      samples.map(([at, requests]) => ({ at, requests })),
    );
    expect(seen.map(({ replicas }) => replicas)).toEqual(expected);
  });

  test('always has enough replicas for the requests, within its limits, and never none with a request', () => {
    fc.assert(
      fc.property(autoscaleOf, fc.nat({ max: 12 }), samplesOf, (autoscale, start, samples) => {
        for (const { requests, replicas } of simulate(autoscale, start, samples)) {
          expect(replicas).toBeGreaterThanOrEqual(Math.min(autoscale.max, Math.ceil(requests / autoscale.inFlight)));
          expect(replicas).toBeGreaterThanOrEqual(Math.max(autoscale.min, requests > 0 ? 1 : 0));
          expect(replicas).toBeLessThanOrEqual(autoscale.max);
        }
      }),
    );
  });

  test('does not flap: it removes replicas only if no moment of the whole window needed them', () => {
    fc.assert(
      fc.property(autoscaleOf, fc.nat({ max: 12 }), samplesOf, (autoscale, start, samples) => {
        const seen = simulate(autoscale, start, samples);
        for (const [index, { at, replicas }] of seen.entries()) {
          if (index === 0 || replicas >= (seen[index - 1]?.replicas ?? 0)) continue;
          const inWindow = seen.slice(0, index + 1).filter((each) => at - each.at < autoscale.windowMs);
          for (const { requests } of inWindow) expect(Math.ceil(requests / autoscale.inFlight)).toBeLessThanOrEqual(Math.max(replicas, 1));
          expect(at - (seen[0]?.at ?? 0)).toBeGreaterThanOrEqual(autoscale.windowMs);
        }
      }),
    );
  });

  test('settles within a window of a steady load, and remembers no more than there are numbers', () => {
    fc.assert(
      fc.property(autoscaleOf, samplesOf, fc.nat({ max: 30 }), (autoscale, samples, steady) => {
        const from = samples.at(-1)?.at ?? 0;
        const rest = Array.from({ length: 40 }, (_, index) => ({ at: from + 1 + index * 10_000, requests: steady }));
        const seen = simulate(autoscale, 1, [...samples, ...rest]);
        const settled = seen.filter(({ at }) => at > from + autoscale.windowMs);
        expect(new Set(settled.map(({ replicas }) => replicas)).size).toBe(1);
        for (const { needs } of seen) expect(needs.length).toBeLessThanOrEqual(autoscale.max + 2);
      }),
    );
  });
});
