import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  failuresAfter,
  relistDelayMs,
  retryDelayMs,
  rewatchDelayMs,
  watchSeconds,
} from '../../../../src/cluster/client/decide/choose-list.ts';
import { createRandom } from '../../../support/simulation/seeded-random.ts';

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('delays of a watch', () => {
  test('grow with each failure, from at most half a second to at most fifteen seconds', () => {
    fc.assert(
      fc.property(fc.nat(100), chance, (failures, random) => {
        const delay = retryDelayMs(failures, random);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(Math.min(15_000, 250 * 2 ** failures));
      }),
    );
    expect([0, 1, 2, 3, 4, 5, 6, 99].map((failures) => retryDelayMs(failures, 0.5))).toEqual([0, 250, 500, 1000, 2000, 4000, 7500, 7500]);
  });

  test('spread a thousand clients whose watches broke together over a second, and over the whole delay when they fail again', () => {
    const { next } = createRandom(3);
    for (const [failures, widthMs] of [
      [0, 1000],
      [1, 500],
      [6, 15_000],
    ] as const) {
      const delays = Array.from({ length: 1000 }, () => rewatchDelayMs(failures, { orderly: false, livedMs: 60_000 }, next()));
      const tenths = Array.from(
        { length: 10 },
        (_, tenth) => delays.filter((delay) => Math.floor((delay / widthMs) * 10) === tenth).length,
      );
      for (const count of tenths) expect(count).toBeGreaterThan(60);
    }
  });

  test('start the next watch immediately after a proper end', () => {
    expect(rewatchDelayMs(failuresAfter(5, { orderly: true, livedMs: 300_000 }), { orderly: true, livedMs: 300_000 }, 0.9)).toBe(0);
  });

  test('count a watch that did not last as a failure, however it ended', () => {
    expect([failuresAfter(0, { orderly: true, livedMs: 5 }), failuresAfter(3, { orderly: false, livedMs: 9999 })]).toEqual([1, 4]);
  });

  test('make watches last five to ten minutes, and vary the interval of lists by a tenth', () => {
    fc.assert(
      fc.property(chance, (random) => {
        expect(watchSeconds(random)).toBeGreaterThanOrEqual(300);
        expect(watchSeconds(random)).toBeLessThanOrEqual(600);
        expect(Math.abs(relistDelayMs(600_000, random) - 600_000)).toBeLessThanOrEqual(60_001);
      }),
    );
  });
});
