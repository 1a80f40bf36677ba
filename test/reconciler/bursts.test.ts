/** How many passes it takes to start many slots together, and to probe those that are at rest. */
import { describe, expect, test } from '@jest/globals';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import type { Decide } from '../../src/reconciler/plan-pass.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { FAKE_PROVIDER } from '../support/simulation/world-models.ts';
import { createWorld } from '../support/simulation/world.ts';

const SLOTS = 300;
const MODEL = { default: 'a.gguf' };

const counting = (count: () => void): Decide => ({
  plan(...args) {
    count();
    return plan(...args);
  },
  inspect,
});

describe('a burst of new slots', () => {
  test('takes far fewer passes than it has slots, although each start ends at its own time', async () => {
    let passes = 0;
    let applied = 0;
    const world = createWorld({
      replicas: 1,
      // Nothing else wakes the loop.
      behaviour: { applyMs: () => [(applied += 1) * 20, 0], losesWake: () => true },
      decide: counting(() => (passes += 1)),
    });
    world.setModel('a.gguf', 'present');
    for (let index = 0; index < SLOTS; index += 1) world.edit(`slot-${index}`, { model: MODEL });
    await world.clock.until(() => world.runtime.list().length === SLOTS, SLOTS * 40);
    expect(passes).toBeLessThan(SLOTS / 4);
    await world.clock.advance(60_000);
    await expectRest(world);
  });
});

describe('slots at rest', () => {
  test.each([
    { what: 'that answer at once', answerMs: 0, passes: 30 },
    { what: 'that take a second to answer', answerMs: 1000, passes: 30 },
    { what: 'that take longer than the interval', answerMs: 11_000, passes: 45 },
  ])('are probed for five minutes with a pass for each interval: servers $what', async ({ answerMs, passes: most }) => {
    let passes = 0;
    let probes = 0;
    let slow = 0;
    const world = createWorld({
      behaviour: { losesWake: () => true },
      provider: {
        async health(endpoint, io, slot, signal) {
          probes += 1;
          if (slow > 0) await new Promise<void>((resolve) => void world.clock.at(world.clock.now() + slow, resolve));
          return FAKE_PROVIDER.health(endpoint, io, slot, signal);
        },
      },
      decide: counting(() => (passes += 1)),
    });
    world.setModel('a.gguf', 'present');
    for (let index = 0; index < 5; index += 1) world.edit(`slot-${index}`, { model: MODEL });
    await world.clock.advance(60_000);
    slow = answerMs;
    [passes, probes] = [0, 0];
    await world.clock.advance(300_000);
    // Each server is probed every 10 s, or as soon as it has answered and an interval is over.
    expect(probes).toBeGreaterThanOrEqual(answerMs > 10_000 ? 5 * 13 : 5 * 27);
    expect(passes).toBeLessThanOrEqual(most);
  });
});
