import { expect, test } from '@jest/globals';
import { restartDelay } from '../../../../src/turbo/workers/worker-process.ts';

test('a worker that ends soon, again and again, is started again later each time, up to five seconds', () => {
  const delays: number[] = [];
  let earlier = 0;
  for (let round = 0; round < 8; round += 1) {
    const next = restartDelay(earlier, 1000);
    delays.push(next.delayMs);
    ({ earlier } = next);
  }
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
});

test('after ten seconds, earlier ends no longer count', () => {
  expect(restartDelay(9, 10_000)).toEqual({ delayMs: 100, earlier: 1 });
});
