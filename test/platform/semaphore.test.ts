import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createSemaphore, shareRuns } from '../../src/platform/semaphore.ts';

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

test('work that is shared runs once for all who wait, after all of their calls', async () => {
  const ends: (() => void)[] = [];
  let value = 0;
  const read = shareRuns(async () => {
    const seen = value;
    await new Promise<void>((resolve) => void ends.push(resolve));
    if (seen === 1) throw new Error('The disk is gone');
    return seen;
  });
  const first = read();
  await nextTurn();
  value = 1;
  const waiting = [read(), read(), read()];
  await nextTurn();
  // The first run began before their calls.
  expect(ends).toHaveLength(1);
  ends[0]?.();
  expect(await first).toBe(0);
  await nextTurn();
  expect(ends).toHaveLength(2);
  value = 2;
  const last = read();
  ends[1]?.();
  expect((await Promise.allSettled(waiting)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  await nextTurn();
  ends[2]?.();
  expect(await last).toBe(2);
});
