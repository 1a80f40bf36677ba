import { expect, test } from '@jest/globals';
import { restartDelay } from '../../../src/workers/decide/restart-delay.ts';

test('a worker that ends soon, again and again, is started again later each time, up to half a minute', () => {
  const delays: number[] = [];
  let earlier = 0;
  for (let round = 0; round < 12; round += 1) {
    const next = restartDelay(earlier, 1000);
    delays.push(next.delayMs);
    ({ earlier } = next);
  }
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
});

test('after a minute, earlier ends no longer count', () => {
  expect(restartDelay(9, 60_000)).toEqual({ delayMs: 100, earlier: 1 });
});
