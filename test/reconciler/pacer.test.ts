import { describe, expect, test } from '@jest/globals';
import { createPacer } from '../../src/reconciler/pacer.ts';
import { createWorldClock, WORLD_BEGIN } from '../support/simulation/world-clock.ts';

const RESYNC_MS = 15_000;

/** A pacer whose passes compute for so long, in a world that may wake it without a pause; the times at which passes began. */
function createScene(busyMs: number) {
  const clock = createWorldClock();
  const ends = new AbortController();
  const began: number[] = [];
  let wakesEvery = Number.POSITIVE_INFINITY;
  const pacer = createPacer(
    clock,
    RESYNC_MS,
    () => true,
    async () => {
      began.push(clock.now() - WORLD_BEGIN);
      await new Promise<void>((resolve) => void clock.at(clock.now() + busyMs, resolve));
      return { wakeAt: undefined, busyMs };
    },
  );
  let within = 0;
  const wakeOn = (): void => {
    pacer.wake(within);
    if (Number.isFinite(wakesEvery)) clock.at(clock.now() + wakesEvery, wakeOn);
  };
  const done = pacer.run(ends.signal, (error) => {
    throw error;
  });
  return {
    clock,
    began,
    pacer,
    wakeWithoutPause(withinMs = 0) {
      wakesEvery = 1;
      within = withinMs;
      wakeOn();
    },
    async end() {
      ends.abort();
      await clock.advance(1000);
      await done;
    },
  };
}

const gapsOf = (times: readonly number[]): readonly number[] => times.slice(1).map((at, index) => at - (times[index] ?? 0));

describe('createPacer()', () => {
  test('passes once at the start, and then at each resync', async () => {
    const scene = createScene(0);
    await scene.clock.advance(2 * RESYNC_MS);
    expect(scene.began).toEqual([0, RESYNC_MS, 2 * RESYNC_MS]);
    await scene.end();
  });

  test('takes wakes that come together as one', async () => {
    const scene = createScene(0);
    await scene.clock.advance(100);
    for (let times = 0; times < 10; times += 1) scene.pacer.wake();
    await scene.clock.advance(100);
    expect(scene.began).toEqual([0, 100]);
    await scene.end();
  });

  test('after quiet carries out one thing after another without rests, and in the long run computes an eighth of the time', async () => {
    const busyMs = 12;
    const scene = createScene(busyMs);
    await scene.clock.advance(10_000);
    scene.began.length = 0;
    scene.wakeWithoutPause();
    await scene.clock.advance(60_000);
    const gaps = gapsOf(scene.began);
    expect(new Set(gaps.slice(0, 40))).toEqual(new Set([busyMs]));
    expect(new Set(gaps.slice(-100))).toEqual(new Set([8 * busyMs]));
    expect(scene.began.length * busyMs).toBeLessThan(60_000 / 8 + 3000);
    await scene.end();
  });

  test('never rests for longer than a quarter of a second', async () => {
    const scene = createScene(100);
    scene.wakeWithoutPause();
    await scene.clock.advance(20_000);
    expect(Math.max(...gapsOf(scene.began))).toBe(250);
    await scene.end();
  });

  test.each([
    [5, 250 + 5],
    [50, 20 * 50 + 50],
    [1000, 5000 + 1000],
  ])('lets wakes that can wait take a twentieth of the time at most: passes of %i ms', async (busyMs, gapMs) => {
    const scene = createScene(busyMs);
    await scene.clock.advance(10_000);
    scene.began.length = 0;
    scene.wakeWithoutPause(250);
    await scene.clock.advance(60_000);
    const gaps = gapsOf(scene.began);
    expect(gaps.length).toBeGreaterThan(5);
    // A wake that arrives during a pass counts from there.
    for (const gap of gaps) expect(Math.abs(gap - gapMs)).toBeLessThanOrEqual(busyMs);
    await scene.end();
  });

  test('does not let a wake that cannot wait wait for one that can', async () => {
    const scene = createScene(50);
    scene.pacer.wake(250);
    await scene.clock.advance(400);
    scene.pacer.wake(250);
    scene.pacer.wake();
    await scene.clock.advance(1);
    expect(scene.began.at(-1)).toBe(400);
    await scene.end();
  });
});
