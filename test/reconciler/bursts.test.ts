/** Many slots that start together: how many passes that takes. */
import { describe, expect, test } from '@jest/globals';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld } from '../support/simulation/world.ts';

const SLOTS = 300;
const MODEL = { default: 'a.gguf' };

describe('a burst of new slots', () => {
  test('takes far fewer passes than it has slots, although each start ends at its own time', async () => {
    let passes = 0;
    let applied = 0;
    const world = createWorld({
      replicas: 1,
      // Nothing else wakes the loop.
      behaviour: { applyMs: () => [(applied += 1) * 20, 0], losesWake: () => true },
      decide: {
        plan: (...args) => {
          passes += 1;
          return plan(...args);
        },
        inspect,
      },
    });
    world.setModel('a.gguf', 'present');
    for (let index = 0; index < SLOTS; index += 1) world.edit(`slot-${index}`, { model: MODEL });
    await world.clock.until(() => world.runtime.list().length === SLOTS, SLOTS * 40);
    expect(passes).toBeLessThan(SLOTS / 4);
    await world.clock.advance(60_000);
    await expectRest(world);
  });
});
