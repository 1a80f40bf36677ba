import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createSemaphore } from '../../src/platform/semaphore.ts';

test('as many callers as the limit proceed at once, and the others in the order of their calls', async () => {
  const semaphore = createSemaphore(2);
  const done: number[] = [];
  const acquired = [1, 2, 3, 4].map(async (number) => {
    await semaphore.acquire();
    done.push(number);
  });
  await nextTurn();
  expect([done, semaphore.waiting]).toEqual([[1, 2], 2]);
  semaphore.release();
  await nextTurn();
  expect([done, semaphore.waiting]).toEqual([[1, 2, 3], 1]);
  semaphore.release();
  await Promise.all(acquired);
  for (let held = 0; held < 2; held += 1) semaphore.release();
  expect(await Promise.all([semaphore.acquire(), semaphore.acquire()])).toEqual([true, true]);
});

test('a caller whose signal aborts does not proceed, and takes nobody’s turn', async () => {
  const semaphore = createSemaphore(1);
  const given = new AbortController();
  expect(await semaphore.acquire(AbortSignal.abort())).toBe(false);
  expect(await semaphore.acquire()).toBe(true);
  const [first, second] = [semaphore.acquire(given.signal), semaphore.acquire()];
  given.abort();
  expect(await first).toBe(false);
  semaphore.release();
  expect(await second).toBe(true);
});
