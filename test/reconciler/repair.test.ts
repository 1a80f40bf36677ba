import { describe, expect, test } from '@jest/globals';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { MODEL_FILES } from '../../src/reconciler/decide/facts/workload.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, type World, type WorldOptions } from '../support/simulation/world.ts';

const MINUTE_MS = 60_000;

async function serving(options: WorldOptions = {}, document: Partial<SlotDocument> = {}): Promise<World> {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, ...document });
  await world.reach('primary', 'ready');
  return world;
}

const condition = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);
const answers = (world: World): boolean => world.slot('primary').admission.kind === 'open';
const repairs = (world: World): number => world.changes().filter((change) => change.startsWith('repair')).length;

function scaleDown(world: World): void {
  for (const { id, replicas } of world.runtime.list()) if (replicas?.present !== 0) world.cluster?.scale(id, 0);
}

describe('a workload that another program scales to zero again and again', () => {
  test('is repaired each time, later and later, and says what was altered and how often', async () => {
    const world = await serving({ replicas: 1 });
    const pauses: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      scaleDown(world);
      await world.clock.until(() => !answers(world), 1000);
      const at = world.clock.now();
      if (round === 4) {
        expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'WorkloadAltered' });
        expect(condition(world, 'Ready')?.message).toContain('replicas 0 instead of 1');
        expect(condition(world, 'DriftDetected')?.message).toContain('repaired 4 times');
        expect(condition(world, 'Reconciling')).toMatchObject({ status: 'True', reason: 'WorkloadAltered' });
        expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
      }
      expect(await world.clock.until(() => answers(world), 6 * MINUTE_MS)).toBe(true);
      pauses.push(Math.round((world.clock.now() - at) / 1000));
    }
    expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
  });

  test('is stalled with a warning once that went on for minutes, and is repaired all the same', async () => {
    const world = await serving({ replicas: 1 });
    await world.clock.until(() => {
      scaleDown(world);
      return condition(world, 'Stalled')?.status === 'True';
    }, 30 * MINUTE_MS);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'WorkloadAltered' });
    expect(condition(world, 'Stalled')?.message).toContain('replicas 0 instead of 1');
    expect(world.life().reports.flatMap(({ entries }) => entries)).toContainEqual(
      expect.objectContaining({ kind: 'condition', cause: 'WorkloadAltered', message: expect.stringContaining('Stalled is True') }),
    );
    const before = repairs(world);
    await world.clock.until(() => {
      scaleDown(world);
      return false;
    }, 20 * MINUTE_MS);
    expect(repairs(world)).toBeGreaterThanOrEqual(before + 3);
    await world.reach('primary', 'ready', 6 * MINUTE_MS);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    await expectRest(world);
  });

  test('is stalled at once where the slot only reports drift', async () => {
    const world = await serving({ replicas: 1 }, { lifecycle: { drift: 'warn' } });
    scaleDown(world);
    await world.clock.advance(1000);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'WorkloadAltered' });
    expect(condition(world, 'Stalled')?.message).toContain('set "drift" to "repair"');
    expect(repairs(world)).toBe(0);
  });
});

describe('a workload of a host that is altered again and again', () => {
  test('is replaced each time, later and later, and answers in between', async () => {
    const world = await serving();
    const replaced: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const [before] = world.runtime.list();
      if (before === undefined) throw new Error('There is no workload');
      world.runtime.alter(before.id, { argv: ['fake-server', '--altered'] });
      const at = world.clock.now();
      const isGone = (): boolean => world.runtime.list().every(({ id }) => id !== before.id) && answers(world);
      expect(await world.clock.until(isGone, MINUTE_MS)).toBe(true);
      replaced.push(Math.floor((world.clock.now() - at) / 1000));
    }
    expect(replaced).toEqual([0, 1, 2, 4, 8, 16]);
    await expectRest(world);
  });

  test('is stalled after the limits although it answers, and no longer once the cause is gone', async () => {
    const world = await serving();
    const end = world.clock.now() + 40 * MINUTE_MS;
    const alterForever = (): void => {
      if (world.clock.now() > end) return;
      for (const { id } of world.runtime.list()) world.runtime.alter(id, { argv: ['fake-server', '--altered'] });
      world.clock.at(world.clock.now() + 500, alterForever);
    };
    alterForever();
    await world.clock.advance(30 * MINUTE_MS);
    expect(answers(world)).toBe(true);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'WorkloadAltered' });
    expect(condition(world, 'Stalled')?.message).toMatch(
      /altered from outside again and again: argv differs.*repaired 1\d times.*; stop the cause$/,
    );
    expect(condition(world, 'UpToDate')).toMatchObject({ status: 'False' });
    await world.clock.advance(20 * MINUTE_MS);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    await expectRest(world);
  });

  test('whose model file was replaced says so, and swaps as the slot says', async () => {
    const world = createWorld({ readyMs: () => 5000 });
    world.setModel('a.gguf', 'present', 1000, 'old');
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.reach('primary', 'ready');
    const [before] = world.runtime.list();
    world.setModel('a.gguf', 'present', 1000, 'new');
    await world.clock.until(() => world.runtime.list().some(({ id }) => id !== before?.id), MINUTE_MS);
    // Both fit, so that the new one starts beside the old one.
    expect(world.runtime.list()).toHaveLength(2);
    expect(answers(world)).toBe(true);
    expect(condition(world, 'DriftDetected')).toMatchObject({ status: 'True', reason: 'ModelChanged' });
    expect(world.slot('primary').explain(world.clock.now())).toContain('[ModelChanged]');
    await world.clock.advance(MINUTE_MS);
    expect(world.runtime.list().map(({ container }) => container.env?.[MODEL_FILES])).toEqual(['new']);
    await expectRest(world);
  });

  test('forgets its repairs after ten minutes that went well', async () => {
    const world = await serving();
    for (let round = 0; round < 5; round += 1) {
      for (const { id } of world.runtime.list()) world.runtime.alter(id, { argv: ['fake-server', '--altered'] });
      const isRepaired = (): boolean => answers(world) && condition(world, 'DriftDetected')?.status === 'False';
      await world.clock.advance(500);
      expect(isRepaired()).toBe(true);
      await world.clock.advance(11 * MINUTE_MS);
    }
  });
});
