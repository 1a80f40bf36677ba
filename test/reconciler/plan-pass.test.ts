import { describe, expect, test } from '@jest/globals';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { trackPlan } from '../../src/reconciler/plan-pass.ts';
import { createTracker } from '../../src/reconciler/tracker.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';
import { factsOf, NOW } from './decide/plan-fixture.ts';

const PRIMARY = slotName('primary');

/** A slot that nobody has asked for since it was loaded, up to the pass that unloads it. `onPause` is called between the first two parts of that pass, and of later ones. */
async function unloading(onPause: (world: World) => void): Promise<World> {
  let isDue = false;
  const world: World = createWorld({
    pauseMs() {
      if (isDue) onPause(world);
      return isDue ? 20 : 0;
    },
  });
  world.setModel('a.gguf', 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, load: 'on-demand', lifecycle: { idleTimeout: '30s' } });
  await world.clock.advance(100);
  world.life().traffic.ask(PRIMARY, 100);
  await world.clock.advance(10_000);
  expect(world.slot('primary').admission.kind).toBe('open');
  isDue = true;
  return world;
}

describe('a pass that pauses between its parts', () => {
  test('unloads a slot that nobody uses', async () => {
    const world = await unloading(() => undefined);
    await world.clock.advance(25_000);
    expect(world.runtime.list()).toEqual([]);
  });

  test('does not stop a server that a request has entered since the slot was looked at', async () => {
    let pausedAt = 0;
    const world = await unloading(({ clock, life, runtime }) => {
      const { requests } = life().traffic;
      // The pass that unloads the slot is the first one after 30 seconds without a request.
      if (requests.length === 1 && runtime.list().length > 0 && clock.now() - idleFrom >= 30_000) {
        life().traffic.ask(PRIMARY, 5000);
        pausedAt = clock.now();
      }
    });
    const idleFrom = lastUse(world);
    expect(await world.clock.until(() => pausedAt !== 0, 60_000)).toBe(true);
    await world.clock.advance(2500);
    const [, entered] = world.life().traffic.requests;
    expect(world.runtime.list().map(({ id }) => id)).toEqual([entered?.hold]);
    await world.clock.advance(5000);
    expect(entered?.answers).toEqual(['served']);
  });
});

test.each([
  ['forgets the failures of a slot that has been ready for long', 0, 0],
  ['keeps them where the slot has failed again since the pass looked at it', 1, 2],
])('a plan that is carried out %s', (_, failsAgain, kept) => {
  const { desired, observed } = factsOf({ workloads: [{ id: 'w1' }], budgetBytes: 10_000_000, lastActive: 1000 });
  const tracker = createTracker();
  const fail = (): void =>
    tracker.attempts.failed(PRIMARY, { kind: 'vanish', failure: { kind: 'retry', reason: 'Vanished', message: 'It is gone' } }, NOW);
  for (const slot of desired.slots.values()) tracker.attempts.followEdit(slot);
  fail();
  const looked = { ...observed, ...tracker.facts(NOW) };
  if (failsAgain > 0) fail();
  const made = plan(desired, observed, NOW);
  const decisions = new Map([...made.decisions].map(([name, decision]) => [name, { ...decision, stable: true }]));
  trackPlan(tracker, { ...made, decisions }, looked, NOW);
  expect(tracker.attempts.all.get(PRIMARY)?.failures).toHaveLength(kept);
});

function lastUse(world: World): number {
  const [workload] = world.runtime.list();
  return (workload && world.life().traffic.read().workloads.get(workload.id)?.lastUsedAt) ?? Number.NaN;
}
