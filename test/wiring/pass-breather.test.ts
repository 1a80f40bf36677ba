import { expect, test } from '@jest/globals';
import { createPassBreather } from '../../src/wiring/create-controller.ts';

/** Computes for 30 ms in parts, and returns how often it rested. */
async function restsOf(isBusy: boolean): Promise<number> {
  let rests = 0;
  const breathe = createPassBreather(
    () => isBusy,
    async () => void (rests += 1),
  )();
  const until = performance.now() + 30;
  while (performance.now() < until) await breathe();
  return rests;
}

test('a pass rests for requests only where there are some', async () => {
  expect(await restsOf(true)).toBeGreaterThan(0);
  expect(await restsOf(false)).toBe(0);
});
