import { describe, expect, test } from '@jest/globals';
import type { ObservedWorkload } from '../../src/reconciler/ports.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');
const DOCUMENT = { model: { default: 'a.gguf' } } as const;
/** From its place until its model is there, and from then until it answers. */
const LOADS = { podMs: () => [0, 300] as const };

async function serving(options: WorldOptions = {}): Promise<World> {
  const world = createWorld({ replicas: 1, behaviour: LOADS, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', DOCUMENT);
  await world.reach('primary', 'ready');
  return world;
}

function only(world: World): ObservedWorkload {
  const [workload] = world.runtime.list();
  if (workload === undefined) throw new Error('There is no workload');
  return workload;
}

/** Ends its server, and lets what follows be seen. */
async function crash(world: World): Promise<void> {
  world.runtime.exit(only(world).id, { code: 139 });
  await world.clock.advance(100);
}

const status = (world: World) => world.slot('primary').status;
const condition = (world: World, type: string) => status(world).conditions.find((each) => each.type === type);
const failures = (world: World): readonly string[] =>
  world
    .life()
    .reports.flatMap(({ entries }) => entries)
    .filter(({ kind }) => kind === 'failure')
    .map(({ message }) => message);

describe('a slot whose only pod crashes', () => {
  test('is not made anew: requests wait until the same workload answers again', async () => {
    const world = await serving();
    const { id } = only(world);
    await crash(world);
    expect([world.slot('primary').status.state, world.slot('primary').admission.kind]).toEqual(['starting', 'park']);
    const request = world.life().traffic.ask(PRIMARY, 5);
    await world.reach('primary', 'warming');
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'Warming' });
    await world.clock.until(() => request.answers.length > 0, 2000);
    expect([request.answers, only(world).id, status(world).restarts]).toEqual([['served'], id, 1]);
    expect(world.changes().filter((change) => !change.startsWith('start'))).toEqual([]);
    await expectRest(world);
  });

  test('says why with its last words, while it waits for its kubelet', async () => {
    const world = await serving();
    await crash(world);
    await world.reach('primary', 'ready');
    world.runtime.exit(only(world).id, { code: 137, outOfMemory: true });
    await world.clock.advance(5000);
    const message = 'The process of the server ended unexpectedly (out of memory)';
    expect(world.slot('primary').status.state).toBe('starting');
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'OutOfMemory', message });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'True', reason: 'OutOfMemory' });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    expect(failures(world)).toEqual(['The process of the server ended unexpectedly (exit code 139)', message]);
    const explanation = world.slot('primary').explain(world.clock.now());
    expect(explanation).toContain('its last log lines');
    expect(explanation).not.toContain('tries again');
    await world.reach('primary', 'ready');
    expect(world.slot('primary').explain(world.clock.now())).not.toContain('because');
    await expectRest(world);
  });

  test('is stopped after the fifth crash, asks for a person, and runs after an edit', async () => {
    const world = await serving();
    const { id } = only(world);
    for (const waitMs of [1000, 11_000, 21_000, 41_000]) {
      await crash(world);
      await world.reach('primary', 'ready', waitMs);
      expect(only(world).id).toBe(id);
    }
    await crash(world);
    await world.reach('primary', 'offline', 5000);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CrashLoop' });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'False' });
    expect([status(world).restarts, world.slot('primary').admission]).toMatchObject([4, { code: 'slot.stalled' }]);
    expect(world.slot('primary').explain(world.clock.now())).toContain('its last log lines');
    expect(failures(world)).toHaveLength(5);
    await world.clock.advance(3_600_000);
    expect(world.runtime.list()).toEqual([]);
    world.edit('primary', { model: { default: 'b.gguf' } });
    await world.reach('primary', 'ready');
    expect(status(world).restarts).toBe(0);
    await expectRest(world);
  });

  test('is given its whole time to start again', async () => {
    let hangs = false;
    const world = await serving({ answers: () => !hangs });
    await world.clock.advance(600_000);
    hangs = true;
    const { id } = only(world);
    await crash(world);
    await world.clock.advance(290_000);
    expect([only(world).id, world.slot('primary').status.state]).toEqual([id, 'warming']);
    await world.clock.until(() => world.changes().some((change) => change.startsWith('stop')), 20_000);
    expect(failures(world).at(-1)).toMatch(/did not answer within/);
    hangs = false;
    await world.reach('primary', 'ready');
    expect(only(world).id).not.toBe(id);
    await expectRest(world);
  });

  test('is known to the controller that is started anew as one that runs', async () => {
    const world = await serving();
    await crash(world);
    await world.reach('primary', 'ready');
    await world.restart();
    world.lead(0);
    await world.reach('primary', 'ready');
    await world.clock.advance(20_000);
    expect([failures(world), status(world).restarts]).toEqual([[], 0]);
    await crash(world);
    await world.reach('primary', 'ready');
    expect([failures(world).length, status(world).restarts]).toEqual([1, 1]);
    await expectRest(world);
  });

  test('is counted by each controller, so that the next one that leads knows of a loop', async () => {
    const world = await serving({ replicas: 2 });
    for (const waitMs of [1000, 11_000, 21_000, 41_000]) {
      await crash(world);
      await world.reach('primary', 'ready', waitMs);
    }
    world.lead(1);
    await world.clock.advance(1000);
    await crash(world);
    await world.reach('primary', 'offline', 5000);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CrashLoop' });
  });
});
