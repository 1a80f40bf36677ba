import { describe, expect, test } from '@jest/globals';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');

/** A cluster with room for so many pods, and a slot that serves the model `a.gguf`. */
async function serving(room: { pods: number }, options: WorldOptions = {}, lifecycle: SlotDocument['lifecycle'] = {}): Promise<World> {
  const world = createWorld({ replicas: 1, ...options, behaviour: { room: () => room.pods, ...options.behaviour } });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, lifecycle });
  await world.reach('primary', 'ready');
  return world;
}

const edit = (world: World, lifecycle: SlotDocument['lifecycle'] = {}): void =>
  world.edit('primary', { model: { default: 'b.gguf' }, lifecycle });
const served = (world: World): string => world.slot('primary').status.model;
const condition = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);

describe('a workload that finds no place', () => {
  test('waits for one however long it takes, says why, and counts its start from when it runs', async () => {
    const room = { pods: 0 };
    const world = createWorld({ replicas: 1, behaviour: { room: () => room.pods } });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' }, lifecycle: { startTimeout: '5s' } });
    await world.clock.advance(3_600_000);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'starting' }, admission: { kind: 'park' } });
    expect(condition(world, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
      message: expect.stringContaining('Add a node'),
    });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'True', reason: 'Unschedulable' });
    const failures = world
      .life()
      .reports.flatMap(({ entries }) => entries)
      .filter(({ kind }) => kind === 'failure');
    expect(failures).toMatchObject([{ cause: 'Unschedulable' }]);
    room.pods = 1;
    world.cluster?.place();
    await world.reach('primary', 'ready');
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
  });

  test('gets the room of the old one, which drains first', async () => {
    const world = await serving({ pods: 1 });
    const long = world.life().traffic.ask(PRIMARY, 3000);
    await world.clock.advance(10);
    edit(world);
    await world.reach('primary', 'unloading', 2000);
    const parked = world.life().traffic.ask(PRIMARY, 5);
    await world.clock.until(() => parked.answers.length > 0, 60_000);
    expect([long.answers, parked.answers, served(world)]).toEqual([['served'], ['served'], 'b.gguf']);
    await world.clock.advance(2000);
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
  });

  test('waits beside the old one when told to, and says so', async () => {
    const room = { pods: 1 };
    const world = await serving(room, {}, { swap: 'blue-green' });
    edit(world, { swap: 'blue-green' });
    await world.clock.advance(600_000);
    expect([world.slot('primary').status.state, served(world)]).toEqual(['ready', 'a.gguf']);
    expect(condition(world, 'Ready')).toMatchObject({
      status: 'True',
      reason: 'PreviousServes',
      message: expect.stringContaining('Add a node'),
    });
    expect(world.slot('primary').explain(world.clock.now())).toContain('the old workload does not make room');
    room.pods = 2;
    world.cluster?.place();
    await world.clock.until(() => served(world) === 'b.gguf', 10_000);
    expect(served(world)).toBe('b.gguf');
    await world.clock.advance(2000);
    await expectRest(world);
  });

  test('goes beside the old one where there is room for both', async () => {
    const world = await serving({ pods: 2 });
    edit(world);
    const kinds = new Set<string>();
    await world.clock.until(() => {
      kinds.add(world.slot('primary').admission.kind);
      return served(world) === 'b.gguf';
    }, 10_000);
    expect([kinds, served(world)]).toEqual([new Set(['open']), 'b.gguf']);
  });
});

describe('a workload that cannot fetch its model', () => {
  test('leaves the old one serving, and says why', async () => {
    let why: string | undefined;
    const world = await serving({ pods: 9 }, { behaviour: { podMs: () => [1000, 0], fetchFailure: () => why } }, { startTimeout: '5s' });
    why = 'The model "b.gguf" is not in the catalogue';
    edit(world, { startTimeout: '5s' });
    await world.clock.advance(120_000);
    expect([world.slot('primary').status.state, served(world)]).toEqual(['ready', 'a.gguf']);
    expect(condition(world, 'Ready')).toMatchObject({ status: 'True', reason: 'PreviousServes', message: expect.stringContaining(why) });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'True', reason: 'ModelPullFailed' });
    expect(world.runtime.list()).toHaveLength(2);
    why = undefined;
    await world.clock.until(() => served(world) === 'b.gguf', 20_000);
    await world.clock.advance(2000);
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
  });

  test('is pulling while it fetches, and its start time does not run', async () => {
    const world = createWorld({ replicas: 1, behaviour: { podMs: () => [600_000, 100] } });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' }, lifecycle: { startTimeout: '5s' } });
    await world.clock.advance(300_000);
    expect(world.slot('primary').status.state).toBe('pulling');
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'Fetching' });
    await world.reach('primary', 'ready', 400_000);
    expect(world.changes().filter((change) => change.startsWith('stop'))).toEqual([]);
    await expectRest(world);
  });

  test('is given up when it runs and does not get ready in its time', async () => {
    const world = createWorld({ replicas: 1, behaviour: { podMs: () => [10_000, Number.POSITIVE_INFINITY] } });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' }, lifecycle: { startTimeout: '5s' } });
    await world.clock.advance(14_500);
    expect(world.changes().filter((change) => change.startsWith('stop'))).toEqual([]);
    await world.clock.advance(2000);
    expect(world.changes().filter((change) => change.startsWith('stop'))).toHaveLength(1);
    expect(world.slot('primary').explain(world.clock.now())).toContain('did not answer within 5 s');
  });
});
