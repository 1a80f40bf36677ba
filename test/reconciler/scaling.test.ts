import { describe, expect, test } from '@jest/globals';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');
const MINUTE_MS = 60_000;
const LOADS = { podMs: () => [0, 300] as const };

async function serving(document: Partial<SlotDocument> = {}, options: WorldOptions = {}): Promise<World> {
  const world = createWorld({ replicas: 1, behaviour: LOADS, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  scale(world, 1, document);
  await world.clock.advance(10);
  if (document.load === 'on-demand') world.life().traffic.ask(PRIMARY, 5);
  await world.clock.until(() => isReady(world), 10_000);
  return world;
}

/** As an autoscaler does: an edit of nothing but the number of replicas. */
function scale(world: World, replicas: number, document: Partial<SlotDocument> = {}): void {
  world.edit('primary', { model: { default: 'a.gguf' }, ...document, replicas });
}

const condition = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);
const isReady = (world: World): boolean => condition(world, 'Ready')?.status === 'True';
const starts = (world: World): number => world.changes().filter((change) => change.startsWith('start')).length;

/** Its only server crashes as soon as it is ready. */
async function crash(world: World): Promise<void> {
  await world.clock.until(() => isReady(world), 2 * MINUTE_MS);
  for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
  await world.clock.advance(100);
}

async function crashLoop(world: World, meanwhile: () => unknown = () => undefined): Promise<void> {
  for (let times = 1; times <= 5; times += 1) {
    await crash(world);
    meanwhile();
  }
  await world.clock.until(() => condition(world, 'Stalled')?.status === 'True', 5000);
  expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CrashLoop' });
}

describe('an autoscaler that scales a slot up and down', () => {
  test('does not end its crash loop, also across restarts of the controller', async () => {
    const world = await serving();
    await crashLoop(world);
    const before = starts(world);
    for (const replicas of [3, 2, 1]) {
      scale(world, replicas);
      await world.clock.advance(15_000);
      await world.restart();
      world.lead(0);
      await world.clock.advance(15_000);
      expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CrashLoop' });
      expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
    }
    expect([starts(world), world.runtime.list()]).toEqual([before, []]);
    await expectRest(world);
  });

  test('does not end it while no controller runs', async () => {
    const world = await serving();
    await crashLoop(world);
    const before = starts(world);
    await world.life().end();
    scale(world, 2);
    scale(world, 4);
    await world.restart();
    world.lead(0);
    await world.clock.advance(10 * MINUTE_MS);
    expect([condition(world, 'Stalled')?.reason, starts(world)]).toEqual(['CrashLoop', before]);
  });

  test('does not begin the count of its crashes again', async () => {
    const world = await serving();
    for (let times = 1; times <= 5; times += 1) {
      expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
      await crash(world);
      scale(world, 1 + (times % 2));
      await world.clock.advance(100);
    }
    await world.clock.until(() => condition(world, 'Stalled')?.status === 'True', 5000);
    expect([condition(world, 'Stalled')?.reason, world.slot('primary').status.failures?.length]).toEqual(['CrashLoop', 5]);
  });

  test('does not end the back-off of repairs', async () => {
    const world = await serving();
    for (let round = 0; round < 10; round += 1) {
      const [workload] = world.runtime.list();
      if (workload !== undefined) world.runtime.alter(workload.id, { env: { SLOT: 'other' } });
      scale(world, 1 + (round % 2));
      await world.clock.advance(5000);
    }
    expect(world.changes().filter((change) => change.startsWith('repair')).length).toBeLessThanOrEqual(6);
    expect(condition(world, 'Ready')).toMatchObject({ status: 'True' });
  });

  test('while any other edit ends the crash loop', async () => {
    const world = await serving();
    await crashLoop(world);
    scale(world, 2, { lifecycle: { startTimeout: '10m' } });
    await world.reach('primary', 'ready');
    expect(world.slot('primary').status.failures).toBeUndefined();
  });

  test('does not load a slot again that was unloaded for being idle', async () => {
    const world = await serving({ lifecycle: { idleTimeout: '1m' } });
    scale(world, 3, { lifecycle: { idleTimeout: '1m' } });
    await world.reach('primary', 'offline', 2 * MINUTE_MS);
    const before = starts(world);
    scale(world, 1, { lifecycle: { idleTimeout: '1m' } });
    await world.clock.advance(2 * MINUTE_MS);
    expect([world.slot('primary').status.state, starts(world)]).toEqual(['offline', before]);
    const request = world.life().traffic.ask(PRIMARY, 5);
    await world.clock.until(() => request.answers.length > 0, 10_000);
    expect([request.answers, world.slot('primary').status.replicas]).toEqual([['served'], { present: 1, ready: 1 }]);
  });

  test('does not keep a slot loaded that is idle', async () => {
    const world = await serving({ lifecycle: { idleTimeout: '1m' } });
    for (let round = 0; round < 8; round += 1) {
      scale(world, 1 + (round % 2), { lifecycle: { idleTimeout: '1m' } });
      await world.clock.advance(15_000);
    }
    expect(world.slot('primary').status.state).toBe('offline');
  });

  test('keeps it ready, with the number of its pods in the status at any time', async () => {
    const world = await serving({}, { behaviour: { ...LOADS, applyMs: () => [300, 0] } });
    scale(world, 3);
    const seen = new Set<string>();
    for (let step = 0; step < 100; step += 1) {
      await world.clock.advance(10);
      seen.add(`${condition(world, 'Ready')?.status} ${world.slot('primary').status.replicas?.present}`);
    }
    expect(seen).toEqual(new Set(['True 1', 'True 3']));
    expect(starts(world)).toBe(1);
  });
});

describe('a slot that is scaled to zero', () => {
  test('and loads on demand lets requests wait, says so, and answers them once it is scaled up', async () => {
    const onDemand = { load: 'on-demand' } as const;
    const world = await serving(onDemand);
    scale(world, 0, onDemand);
    await world.reach('primary', 'offline');
    const request = world.life().traffic.ask(PRIMARY, 5);
    await world.clock.advance(30_000);
    expect([request.answers, world.slot('primary').admission.kind, world.runtime.list()]).toEqual([[], 'park', []]);
    expect(condition(world, 'Ready')).toMatchObject({ reason: 'NoReplicas', message: expect.stringContaining('requests wait') });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    scale(world, 1, onDemand);
    await world.clock.until(() => request.answers.length > 0, 10_000);
    expect(request.answers).toEqual(['served']);
  });

  test('and is always loaded refuses requests, and runs again once it is scaled up, however long it was idle', async () => {
    const always = { lifecycle: { idleTimeout: '1m' } } as const;
    const world = await serving(always);
    scale(world, 0, always);
    await world.reach('primary', 'offline');
    expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.disabled' });
    await world.clock.advance(10 * MINUTE_MS);
    scale(world, 2, always);
    await world.reach('primary', 'ready');
  });

  test('and stalled refuses requests, because waiting does not help them', async () => {
    const world = await serving({ load: 'on-demand' });
    await crashLoop(world, () => world.life().traffic.ask(PRIMARY, 5));
    scale(world, 0, { load: 'on-demand' });
    await world.clock.advance(1000);
    expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
  });
});
