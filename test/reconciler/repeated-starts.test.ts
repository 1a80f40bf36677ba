/** What a controller starts and stops again and again, because facts or its own verdicts change, backs off. */
import { describe, expect, test } from '@jest/globals';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { recordedHardware } from '../support/hardware/recorded-machines.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const MINUTE_MS = 60_000;
const DOCUMENT = { model: { default: 'a.gguf' } } as const;

function worldOf(options: WorldOptions, load: 'always' | 'on-demand' = 'always'): World {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.edit('primary', { ...DOCUMENT, load });
  return world;
}

function askEachSecond(world: World): void {
  world.life().traffic.ask(slotName('primary'), 10);
  world.clock.at(world.clock.now() + 1000, () => askEachSecond(world));
}

const startsOf = (world: World): number => world.changes().filter((text) => text.startsWith('start ')).length;

/** There is room for a slot until it runs. */
const CHANGING_ITS_MIND: WorldOptions = {
  decide: {
    inspect: () => [],
    plan(desired, observed, now, steps) {
      const isUp = observed.runtime.kind === 'reachable' && observed.runtime.facts.workloads.length > 0;
      return plan({ ...desired, memoryBudgetBytes: isUp ? 500 : 3000 }, observed, now, steps);
    },
  },
};

describe('a slot that admission lets start and then stops', () => {
  test.each(['always', 'on-demand'] as const)('backs off where "load" is "%s", and starts at once after an edit', async (load) => {
    const world = worldOf({ ...CHANGING_ITS_MIND, readyMs: () => 5000 }, load);
    if (load === 'on-demand') askEachSecond(world);
    await world.clock.advance(10 * MINUTE_MS);
    expect(startsOf(world)).toBeGreaterThan(5);
    expect(startsOf(world)).toBeLessThan(12);
    const before = startsOf(world);
    world.edit('primary', { ...DOCUMENT, load, restartedAt: '2026-01-01T00:00:00Z' });
    await world.clock.advance(500);
    expect(startsOf(world)).toBe(before + 1);
  });

  test('backs off also where its server answers before it is stopped', async () => {
    const world = worldOf({ ...CHANGING_ITS_MIND, readyMs: () => 0 });
    await world.clock.advance(10 * MINUTE_MS);
    expect(startsOf(world)).toBeGreaterThan(5);
    expect(startsOf(world)).toBeLessThan(12);
    expect(world.slot('primary').explain(world.clock.now())).toContain('StartedBefore');
  });

  test('is not held back once there is room for it', async () => {
    let budget = 500;
    const world = worldOf({
      decide: { inspect, plan: (desired, ...rest) => plan({ ...desired, memoryBudgetBytes: budget }, ...rest) },
    });
    await world.clock.advance(10 * MINUTE_MS);
    expect(startsOf(world)).toBe(0);
    budget = 3000;
    world.life().loop.wake();
    await world.reach('primary', 'ready', 1000);
  });
});

test('a slot that is loaded for each request starts at once each time', async () => {
  const world = worldOf({}, 'on-demand');
  world.edit('primary', { ...DOCUMENT, load: 'on-demand', lifecycle: { idleTimeout: '1s' } });
  for (let round = 1; round <= 6; round += 1) {
    world.life().traffic.ask(slotName('primary'), 10);
    await world.reach('primary', 'ready', 500);
    await world.reach('primary', 'offline', 5000);
    await world.clock.advance(100);
    expect(startsOf(world)).toBe(round);
  }
});

describe('a host that does not answer', () => {
  const GIB = 2 ** 30;

  test('leaves backends, images and budgets as they are', async () => {
    let isGone = false;
    const memoryTotalBytes = 4 * GIB;
    const world = worldOf({
      host: { memoryTotalBytes, memoryAvailableBytes: memoryTotalBytes, hardware: { ...recordedHardware('dgx-spark') } },
      disturb: (port) => (isGone && port === 'host' ? { kind: 'throw', message: 'Nothing can be read' } : undefined),
    });
    await world.reach('primary', 'ready');
    const { revision } = world.runtime.list()[0] ?? {};
    world.setModel('large.gguf', 'present', 8 * GIB);
    world.edit('embed', { model: { default: 'large.gguf' } });
    await world.clock.advance(2000);
    const before = [...world.changes()];
    isGone = true;
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.changes()).toEqual(before);
    expect(world.runtime.list().map((workload) => workload.revision)).toEqual([revision]);
    expect(world.slot('embed').explain(world.clock.now())).toContain('InsufficientMemory');
    const { text } = await world.life().loop.preview(new Map([[slotName('primary'), { ...DOCUMENT }]]));
    expect(text).toContain('InsufficientMemory');
  });
});

test('a start that fails for a day is tried less and less often, and then every five minutes', async () => {
  const at: number[] = [];
  const world: World = createWorld({
    behaviour: {
      applyFailure: () => {
        at.push(world.clock.now());
        return { kind: 'retry', reason: 'StartFailed', message: 'It cannot start' };
      },
    },
  });
  world.setModel('a.gguf', 'present');
  world.edit('primary', { model: { default: 'a.gguf' } });
  await world.clock.advance(8 * 3_600_000);
  expect(at.length).toBeGreaterThan(40);
  const pauses = at.slice(1).map((each, index) => each - (at[index] ?? 0));
  for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(Math.min(pauses[index - 1] ?? 0, 300_000));
});
