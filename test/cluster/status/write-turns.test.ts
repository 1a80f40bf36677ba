import { describe, expect, test } from '@jest/globals';
import type { Clock } from '../../../src/reconciler/ports.ts';
import { createWriteTurns } from '../../../src/cluster/status/write-turns.ts';
import { createWorldClock } from '../../support/simulation/world-clock.ts';

type Turn = (key: string, hurry: boolean) => Promise<number | undefined> | number | undefined;

function create(turn: Turn) {
  const world = createWorldClock();
  let timers = 0;
  const clock: Clock = {
    now: world.now,
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
  return { world, turns: createWriteTurns<string>({ clock, concurrency: 2, turn }), timers: () => timers };
}

describe('createWriteTurns()', () => {
  test('keys have their turns in order, two at once, each once however often it asked', async () => {
    const begun: string[] = [];
    const { world, turns } = create(
      async (key) =>
        await new Promise((resolve) => {
          begun.push(key);
          world.at(world.now() + 10, () => resolve(undefined));
        }),
    );
    for (const key of ['a', 'b', 'c', 'c', 'd', 'c']) turns.ask(key);
    expect(begun).toEqual(['a', 'b']);
    turns.ask('a');
    await world.advance(15);
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
    await world.advance(1000);
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'a']);
  });

  test('who wants to wait comes again at its time, or when it is asked', async () => {
    const begun: string[] = [];
    const waits = new Map([['a', 100]]);
    const { world, turns, timers } = create((key) => {
      begun.push(key);
      const ms = waits.get(key);
      waits.delete(key);
      return ms === undefined ? undefined : world.now() + ms;
    });
    turns.ask('a');
    await world.advance(99);
    expect(begun).toEqual(['a']);
    await world.advance(1);
    expect(begun).toEqual(['a', 'a']);
    waits.set('a', 60_000);
    turns.ask('a');
    turns.ask('a');
    expect(begun).toHaveLength(4);
    expect(timers()).toBe(0);
  });

  test('in a pause nobody has a turn, and no timer stays when nothing is left to do', async () => {
    const begun: string[] = [];
    const { world, turns, timers } = create((key) => void begun.push(key));
    turns.pauseUntil(world.now() + 500);
    turns.ask('a');
    await world.advance(499);
    expect(begun).toEqual([]);
    await world.advance(1);
    expect([begun, timers()]).toEqual([['a'], 0]);
    turns.pauseUntil(world.now() + 500);
    turns.ask('b');
    expect(timers()).toBe(1);
    turns.clear();
    expect(timers()).toBe(0);
    await world.advance(1000);
    expect(begun).toEqual(['a']);
  });

  test('flush() waits for no time, and ends at a pause', async () => {
    const begun: string[] = [];
    const { world, turns, timers } = create((key, hurry) => {
      begun.push(key);
      if (key === 'away') turns.pauseUntil(world.now() + 1000);
      return hurry ? undefined : world.now() + 60_000;
    });
    turns.ask('a');
    await turns.flush();
    expect([begun, timers()]).toEqual([['a', 'a'], 0]);
    await turns.flush();
    turns.pauseUntil(world.now() + 10);
    for (const key of ['away', 'b']) turns.ask(key);
    await turns.flush();
    expect(begun).toContain('away');
    expect(begun).not.toContain('b');
  });
});
