import { describe, expect, test } from '@jest/globals';
import type { Clock } from '../../../src/reconciler/ports.ts';
import { createWriteQueue } from '../../../src/cluster/slots/write-queue.ts';
import { createWorldClock } from '../../support/simulation/world-clock.ts';

type Write = (key: string, flushing: boolean) => Promise<number | undefined> | number | undefined;

function create(write: Write) {
  const world = createWorldClock();
  let timers = 0;
  const clock: Clock = {
    now: world.now,
    wallNow: world.now,
    at(at, callback) {
      timers += 1;
      let open = true;
      const close = () => {
        if (open) timers -= 1;
        open = false;
      };
      const cancel = world.at(at, () => {
        close();
        callback();
      });
      return () => {
        close();
        cancel();
      };
    },
  };
  return { world, queue: createWriteQueue<string>({ clock, concurrency: 2, write }), timers: () => timers };
}

describe('createWriteQueue()', () => {
  test('writes keys in order, two at once, and each once however often it was enqueued', async () => {
    const written: string[] = [];
    const { world, queue } = create(
      async (key) =>
        await new Promise((resolve) => {
          written.push(key);
          world.at(world.now() + 10, () => resolve(undefined));
        }),
    );
    for (const key of ['a', 'b', 'c', 'c', 'd', 'c']) queue.enqueue(key);
    expect(written).toEqual(['a', 'b']);
    queue.enqueue('a');
    await world.advance(15);
    expect(written).toEqual(['a', 'b', 'c', 'd']);
    await world.advance(1000);
    expect(written).toEqual(['a', 'b', 'c', 'd', 'a']);
  });

  test('writes a key again at the time it returned, or when it is enqueued', async () => {
    const written: string[] = [];
    const waits = new Map([['a', 100]]);
    const { world, queue, timers } = create((key) => {
      written.push(key);
      const ms = waits.get(key);
      waits.delete(key);
      return ms === undefined ? undefined : world.now() + ms;
    });
    queue.enqueue('a');
    await world.advance(99);
    expect(written).toEqual(['a']);
    await world.advance(1);
    expect(written).toEqual(['a', 'a']);
    waits.set('a', 60_000);
    queue.enqueue('a');
    queue.enqueue('a');
    expect(written).toHaveLength(4);
    expect(timers()).toBe(0);
  });

  test('writes nothing during a pause, and leaves no timer when nothing is queued', async () => {
    const written: string[] = [];
    const { world, queue, timers } = create((key) => void written.push(key));
    queue.pauseUntil(world.now() + 500);
    queue.enqueue('a');
    await world.advance(499);
    expect(written).toEqual([]);
    await world.advance(1);
    expect([written, timers()]).toEqual([['a'], 0]);
    queue.pauseUntil(world.now() + 500);
    queue.enqueue('b');
    expect(timers()).toBe(1);
    queue.clear();
    expect(timers()).toBe(0);
    await world.advance(1000);
    expect(written).toEqual(['a']);
  });

  test('flush() does not wait for times, and ends at a pause', async () => {
    const written: string[] = [];
    const { world, queue, timers } = create((key, flushing) => {
      written.push(key);
      if (key === 'away') queue.pauseUntil(world.now() + 1000);
      return flushing ? undefined : world.now() + 60_000;
    });
    queue.enqueue('a');
    await queue.flush();
    expect([written, timers()]).toEqual([['a', 'a'], 0]);
    await queue.flush();
    queue.pauseUntil(world.now() + 10);
    for (const key of ['away', 'b']) queue.enqueue(key);
    await queue.flush();
    expect(written).toContain('away');
    expect(written).not.toContain('b');
  });
});
