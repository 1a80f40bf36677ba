import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, type World, type WorldOptions } from '../support/simulation/world.ts';
import type { RecordedFailures } from '../../src/schema/status/slot-status.ts';
import type { SlotName } from '../../src/schema/words/names.ts';

const DOCUMENT = { model: { default: 'a.gguf' } } as const;
const MINUTE_MS = 60_000;

async function serving(options: WorldOptions = {}): Promise<World> {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.edit('primary', DOCUMENT);
  await world.reach('primary', 'ready');
  return world;
}

const stalled = (world: World) => world.slot('primary').status.conditions.find(({ type }) => type === 'Stalled');
const isReady = (world: World): boolean => world.life().board.current().slots.get(world.slot('primary').name)?.status.state === 'ready';

async function crash(world: World, times: number): Promise<void> {
  for (let count = 1; count <= times; count += 1) {
    await world.clock.until(() => isReady(world), 10 * MINUTE_MS);
    for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
    await world.clock.advance(100);
  }
}

describe('a restart of the controller', () => {
  test('does not end a crash loop, and an edit does', async () => {
    const world = await serving();
    await crash(world, 5);
    for (let restarts = 0; restarts < 3; restarts += 1) {
      await world.restart();
      await world.clock.advance(60 * MINUTE_MS);
      expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
      expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
      expect(world.runtime.list()).toEqual([]);
      await expectRest(world);
    }
    world.edit('primary', { ...DOCUMENT, restartedAt: '2026-01-01T00:00:00Z' });
    await world.reach('primary', 'ready', 1000);
    await world.restart();
    await world.reach('primary', 'ready', 1000);
    expect(stalled(world)).toMatchObject({ status: 'False' });
  });

  test('does not begin the count of crashes again', async () => {
    const world = await serving();
    for (let count = 1; count <= 5; count += 1) {
      expect(stalled(world)).toMatchObject({ status: 'False' });
      await crash(world, 1);
      await world.restart();
      await world.clock.advance(100);
    }
    await world.clock.advance(MINUTE_MS);
    expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
  });

  test('does not end a crash loop after the wall clock was set back', async () => {
    const world = await serving();
    await crash(world, 5);
    world.clock.stepWall(-24 * 60 * MINUTE_MS);
    for (let restarts = 0; restarts < 2; restarts += 1) {
      await world.restart();
      await world.clock.advance(MINUTE_MS);
      expect(world.slot('primary').status.failures).toHaveLength(5);
      expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
    }
  });

  test('does not turn crashes that are far apart into a crash loop', async () => {
    const world = await serving();
    for (let count = 1; count <= 8; count += 1) {
      await crash(world, 1);
      await world.restart();
      await world.clock.advance(100);
      await world.restart();
      await world.clock.advance(5 * MINUTE_MS);
    }
    expect(stalled(world)).toMatchObject({ status: 'False' });
    expect(isReady(world)).toBe(true);
  });

  test('forgets the crashes of a slot that was removed and declared again', async () => {
    const world = await serving();
    await crash(world, 5);
    world.remove('primary');
    await world.clock.advance(MINUTE_MS);
    await world.restart();
    world.edit('primary', DOCUMENT);
    await world.reach('primary', 'ready', 1000);
  });

  test('begins the count again where the record is lost', async () => {
    const world = await serving({ recorded: () => new Map() });
    await crash(world, 5);
    expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
    await world.restart();
    await world.reach('primary', 'ready', 1000);
  });

  test('begins the count again where the record cannot be read', async () => {
    const world = await serving({
      recorded: () => {
        throw new Error('It is damaged');
      },
    });
    await crash(world, 5);
    await world.restart();
    await world.reach('primary', 'ready', 5000);
  });

  test('does not begin the count again where the record can be read a moment later', async () => {
    const faults = { left: 0 };
    let recorded: ReadonlyMap<SlotName, RecordedFailures> = new Map();
    const world = await serving({
      recorded: () => {
        faults.left -= 1;
        if (faults.left >= 0) throw Object.assign(new Error('Too many open files'), { code: 'EMFILE' });
        return recorded;
      },
    });
    await crash(world, 5);
    const { name, status } = world.slot('primary');
    recorded = new Map([[name, status]]);
    faults.left = 3;
    await world.restart();
    await world.clock.advance(MINUTE_MS);
    expect(faults.left).toBe(-1);
    expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
  });
});

describe('the times of a status', () => {
  const times = (world: World) => {
    const { since, conditions } = world.slot('primary').status;
    return [since, ...conditions.map(({ lastTransitionAt }) => lastTransitionAt)];
  };

  test('outlast a restart while the runtime does not answer', async () => {
    const faults: { down: string | undefined } = { down: undefined };
    const world = await serving({ behaviour: { unreachable: () => faults.down } });
    await world.clock.advance(MINUTE_MS);
    const { since, conditions } = world.slot('primary').status;
    faults.down = 'Connection refused';
    await world.clock.advance(MINUTE_MS);
    await world.restart();
    await world.clock.advance(MINUTE_MS);
    faults.down = undefined;
    await world.clock.advance(MINUTE_MS);
    expect(world.slot('primary').status.since).toBe(since);
    const specValid = ({ type }: { readonly type: string }): boolean => type === 'SpecValid';
    expect(world.slot('primary').status.conditions.find(specValid)).toEqual(conditions.find(specValid));
  });

  test('begin again for a slot that was removed and declared again', async () => {
    const world = createWorld();
    world.edit('primary', { ...DOCUMENT, enabled: false });
    await world.reach('primary', 'offline');
    await world.clock.advance(MINUTE_MS);
    const before = times(world);
    await world.restart();
    world.remove('primary');
    await world.clock.advance(1000);
    world.edit('primary', { ...DOCUMENT, enabled: false });
    await world.reach('primary', 'offline');
    expect(Math.min(...times(world))).toBeGreaterThan(Math.max(...before));
  });
});

describe('another leader', () => {
  test('knows of the crash loop', async () => {
    const world = await serving({ replicas: 2, behaviour: { restartMs: () => 500 } });
    await crash(world, 5);
    await world.clock.until(() => stalled(world)?.status === 'True', 10 * MINUTE_MS);
    await world.clock.advance(1000);
    for (const next of [1, 0, 1]) {
      world.lead(next);
      await world.clock.advance(10 * MINUTE_MS);
      expect(stalled(world)).toMatchObject({ status: 'True', reason: 'CrashLoop' });
      expect(world.runtime.list()).toEqual([]);
    }
    world.edit('primary', { ...DOCUMENT, restartedAt: '2026-01-01T00:00:00Z' });
    await world.reach('primary', 'ready', MINUTE_MS);
  });
});

test('the numbers of a timeline go on after a restart and after a crash', async () => {
  const world = await serving();
  const numbers = [world.life()];
  numbers.push(await world.restart());
  world.edit('primary', { ...DOCUMENT, restartedAt: '2026-01-01T00:00:00Z' });
  await world.clock.advance(MINUTE_MS);
  numbers.push(world.crash());
  world.edit('primary', { ...DOCUMENT, restartedAt: '2026-01-02T00:00:00Z' });
  await world.clock.advance(MINUTE_MS);
  const all = numbers.flatMap(({ reports }) => reports.flatMap(({ entries }) => entries.map(({ seq }) => seq)));
  expect(all.length).toBeGreaterThan(10);
  expect(all).toEqual(all.map((_, index) => index + 1));
});

test('a slot of a cluster that is deleted and declared again counts no crash of the one before', async () => {
  const world = await serving({ replicas: 2, behaviour: { restartMs: () => 500 } });
  await crash(world, 5);
  await world.clock.until(() => stalled(world)?.status === 'True', 10 * MINUTE_MS);
  world.remove('primary');
  world.edit('primary', DOCUMENT);
  world.lead(1);
  await world.reach('primary', 'ready', MINUTE_MS);
  expect(world.slot('primary').status.failures).toBeUndefined();
});
