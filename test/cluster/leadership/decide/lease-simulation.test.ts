import { describe, expect, test } from '@jest/globals';
import { leaseTimes, type LeaseTimes } from '../../../../src/cluster/leadership/decide/lease-decision.ts';
import { simulateLease, type LeaseHistory } from '../../../support/kube/lease-world.ts';

const SEEDS = 600;
const TIMES = leaseTimes(10_000);

function histories(times: LeaseTimes, seeds: number): readonly { readonly seed: number; readonly history: LeaseHistory }[] {
  return Array.from({ length: seeds }, (_, seed) => ({
    seed,
    history: simulateLease({ seed, times, replicas: 2 + (seed % 3), incidentsUntil: 180_000, end: 240_000 }),
  }));
}

describe('candidates for a lease, whatever incidents occur', () => {
  const all = histories(TIMES, SEEDS);

  test('never have two leaders', () => {
    expect(all.filter(({ history }) => history.overlaps.length > 0).map(({ seed, history }) => [seed, history.overlaps[0]])).toEqual([]);
  });

  test('have one leader again after the incidents', () => {
    expect(all.filter(({ history }) => history.leadersAtEnd.length !== 1).map(({ seed }) => seed)).toEqual([]);
  });

  test('had several terms, and sent few requests', () => {
    const terms = all.map(({ history }) => history.terms);
    expect(Math.min(...terms)).toBeGreaterThanOrEqual(1);
    expect(terms.reduce((sum, count) => sum + count, 0) / SEEDS).toBeGreaterThan(5);
    // There is a renewal every 2.5 s; the rest is a margin for the incidents of up to four replicas.
    expect(Math.max(...all.map(({ history }) => history.requests)) / 240).toBeLessThan(4);
  });
});

describe('the simulation', () => {
  test.each([
    ['leads longer than the lease duration', { ...TIMES, renewDeadlineMs: TIMES.durationMs * 1.3 }],
    ['leads immediately with a Lease that it has just created', { ...TIMES, createdDelayMs: 0 }],
  ])('detects a candidate that %s', (_what, times) => {
    expect(histories(times, 100).some(({ history }) => history.overlaps.length > 0)).toBe(true);
  });
});
