import { describe, expect, test } from '@jest/globals';
import { leaseTimes, type LeaseTimes } from '../../../../src/cluster/leadership/decide/lease-decision.ts';
import { simulateLease, type LeaseHistory } from '../../../support/kube/lease-world.ts';

const SEEDS = 600;
const TIMES = leaseTimes(10_000);

function histories(times: LeaseTimes, seeds: number): readonly { readonly seed: number; readonly history: LeaseHistory }[] {
  return Array.from({ length: seeds }, (_, seed) => ({
    seed,
    history: simulateLease({ seed, times, replicas: 2 + (seed % 3), troubleUntil: 180_000, end: 240_000 }),
  }));
}

describe('candidates for a lease, whatever happens', () => {
  const all = histories(TIMES, SEEDS);

  test('never lead together', () => {
    expect(all.filter(({ history }) => history.overlaps.length > 0).map(({ seed, history }) => [seed, history.overlaps[0]])).toEqual([]);
  });

  test('have one leader again when the waitingReason is over', () => {
    expect(all.filter(({ history }) => history.leadersAtEnd.length !== 1).map(({ seed }) => seed)).toEqual([]);
  });

  test('had terms to overlap with, and asked seldom', () => {
    const terms = all.map(({ history }) => history.terms);
    expect(Math.min(...terms)).toBeGreaterThanOrEqual(1);
    expect(terms.reduce((sum, count) => sum + count, 0) / SEEDS).toBeGreaterThan(5);
    // Each renewal is a request each 2.5 s; twice as many leave room for the troubles of up to four replicas.
    expect(Math.max(...all.map(({ history }) => history.requests)) / 240).toBeLessThan(4);
  });
});

describe('the simulation', () => {
  test.each([
    ['leads until others may begin and longer', { ...TIMES, renewDeadlineMs: TIMES.durationMs * 1.3 }],
    ['leads with a lease that it has just created', { ...TIMES, createdDelayMs: 0 }],
  ])('notices a candidate that %s', (_what, times) => {
    expect(histories(times, 100).some(({ history }) => history.overlaps.length > 0)).toBe(true);
  });
});
