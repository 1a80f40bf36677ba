import { describe, expect, test } from '@jest/globals';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import type { Life } from '../support/simulation/world-life.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');
const document = (model: string, part: Partial<SlotDocument> = {}): SlotDocument => ({ model: { default: model }, ...part });

async function serving(options: WorldOptions = {}, part: Partial<SlotDocument> = {}): Promise<World> {
  const world = createWorld({ replicas: 2, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', document('a.gguf', part));
  await world.reach('primary', 'ready');
  await world.clock.advance(2000);
  return world;
}

function lifeOf(world: World, index: number): Life {
  const life = world.lives()[index];
  if (life === undefined) throw new Error(`There is no controller ${index}`);
  return life;
}

const seenBy = (world: World, index: number) => lifeOf(world, index).board.current().slots.get(PRIMARY);
const ids = (world: World): readonly string[] => world.runtime.list().map(({ id }) => id);
const lines = (life: Life): string => JSON.stringify(life.reports.flatMap(({ entries }) => entries));

describe('a controller that does not lead', () => {
  test('serves what the one that leads has started, and begins nothing', async () => {
    const world = await serving();
    expect(seenBy(world, 1)).toMatchObject({ status: { state: 'ready' }, admission: { kind: 'open' } });
    const request = lifeOf(world, 1).traffic.ask(PRIMARY, 50);
    await world.clock.advance(1000);
    expect(request.answers).toEqual(['served']);
    expect(lines(lifeOf(world, 1))).not.toMatch(/Starting|Started|Stopping/);
    expect(lines(lifeOf(world, 0))).toContain('Starting ');
    expect(lines(lifeOf(world, 1))).not.toContain('disappeared without being stopped');
  });

  test('begins nothing while nobody leads, however long that is', async () => {
    const world = createWorld({ replicas: 2 });
    world.lead(undefined);
    world.setModel('a.gguf', 'present');
    world.edit('primary', document('a.gguf'));
    await world.clock.advance(600_000);
    expect(world.runtime.list()).toEqual([]);
    expect(seenBy(world, 1)).toMatchObject({ status: { state: 'starting' }, admission: { kind: 'park' } });
    world.lead(1);
    await world.reach('primary', 'ready');
    expect(world.runtime.list()).toHaveLength(1);
  });

  test('takes no part in a swap but to follow it, and does not take it for a fault', async () => {
    const world = await serving();
    world.edit('primary', document('b.gguf'));
    await world.clock.advance(20_000);
    expect(seenBy(world, 1)).toMatchObject({ status: { state: 'ready', model: 'b.gguf' } });
    world.edit('primary', document('b.gguf', { enabled: false }));
    await world.clock.advance(20_000);
    expect(seenBy(world, 1)?.status.state).toBe('offline');
    expect(lines(lifeOf(world, 1))).not.toMatch(/Starting |Stopping |disappeared without being stopped/);
  });

  test('goes on probing what it takes for faulty, and sends requests there again', async () => {
    let cut = false;
    const world = await serving({ answers: () => !cut });
    world.lead(undefined);
    cut = true;
    await world.clock.until(() => seenBy(world, 1)?.admission.kind === 'park', 120_000);
    expect(seenBy(world, 1)?.admission.kind).toBe('park');
    cut = false;
    await world.clock.until(() => seenBy(world, 1)?.admission.kind === 'open', 60_000);
    expect(seenBy(world, 1)?.admission.kind).toBe('open');
  });

  test('wakes a slot through the one that leads, once', async () => {
    const world = createWorld({ replicas: 3 });
    world.setModel('a.gguf', 'present');
    world.edit('primary', document('a.gguf', { load: 'on-demand', lifecycle: { idleTimeout: '30s' } }));
    await world.clock.advance(1000);
    expect(world.runtime.list()).toEqual([]);
    const requests = [1, 2, 2].map((index) => lifeOf(world, index).traffic.ask(PRIMARY, 50));
    await world.clock.until(() => requests.every(({ answers }) => answers.length > 0), 10_000);
    expect(requests.map(({ answers }) => answers)).toEqual([['served'], ['served'], ['served']]);
    expect(world.changes().filter((change) => change.startsWith('start'))).toHaveLength(1);
    await world.clock.advance(60_000);
    expect(world.runtime.list()).toEqual([]);
  });
});

describe('a controller that comes to lead', () => {
  test('carries on without restarting anything', async () => {
    const world = await serving({ replicas: 2 });
    const before = ids(world);
    for (const index of [1, undefined, 0, 1]) {
      world.lead(index);
      await world.clock.advance(12_000);
    }
    expect(ids(world)).toEqual(before);
    expect(world.changes()).toHaveLength(1);
    await expectRest(world);
  });

  test('goes on with a swap that another one began', async () => {
    const world = await serving({ behaviour: { podMs: () => [5000, 2000] } });
    world.edit('primary', document('b.gguf'));
    await world.clock.advance(3000);
    expect(world.runtime.list()).toHaveLength(2);
    await world.restart(0);
    await world.clock.advance(10_000);
    world.lead(1);
    await world.clock.until(() => world.runtime.list().length === 1, 30_000);
    await world.clock.advance(1000);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'ready', model: 'b.gguf' } });
    expect(world.changes().filter((change) => change.startsWith('start'))).toHaveLength(2);
    await expectRest(world);
  });

  test('tells everything to those who listen, as they may have missed it', async () => {
    const world = await serving();
    const before = lifeOf(world, 1).reports.length;
    await world.clock.advance(60_000);
    expect(lifeOf(world, 1).reports).toHaveLength(before);
    world.lead(1);
    await world.clock.advance(100);
    expect(lifeOf(world, 1).reports.at(-1)?.statuses).toMatchObject([{ name: 'primary', state: 'ready' }]);
    expect(lifeOf(world, 1).reports.length).toBeGreaterThan(before);
  });

  test('does not unload at once what only others have used', async () => {
    const world = await serving({}, { lifecycle: { idleTimeout: '30s' } });
    for (let round = 0; round < 4; round += 1) {
      lifeOf(world, 0).traffic.ask(PRIMARY, 50);
      await world.clock.advance(20_000);
    }
    await world.restart(0);
    world.lead(1);
    await world.clock.advance(20_000);
    expect(world.runtime.list()).toHaveLength(1);
    await world.reach('primary', 'offline', 20_000);
  });
});

describe('a controller that leads no more', () => {
  test('gives up what it had begun', async () => {
    const world = createWorld({ replicas: 2, behaviour: { applyMs: () => [5000, 0] } });
    world.setModel('a.gguf', 'present');
    world.edit('primary', document('a.gguf'));
    await world.clock.advance(1000);
    world.lead(undefined);
    await world.clock.advance(60_000);
    expect(world.runtime.list()).toEqual([]);
    world.lead(1);
    await world.reach('primary', 'ready');
    expect(world.runtime.list()).toHaveLength(1);
  });
});

describe('who asks what of a pod', () => {
  const MODEL_PATH = '/v1/completions';

  test('once it has passed, each controller looks whether it reaches the pod, and only the one that leads asks its model', async () => {
    const asked: string[] = [];
    const world = await serving({
      replicas: 5,
      errs: (_endpoint, path) => {
        asked.push(path);
        return false;
      },
    });
    await world.clock.advance(30_000);
    asked.length = 0;
    await world.clock.advance(600_000);
    const ofModel = asked.filter((path) => path === MODEL_PATH).length;
    expect([ofModel > 8, ofModel <= 15]).toEqual([true, true]);
    expect(asked.length - ofModel).toBeGreaterThan(5 * 8);
  });

  test('a model that fails while nobody leads is found by the next one that leads, and its server is replaced', async () => {
    const failing = new Set<string>();
    const world = await serving({ errs: ({ host }, path) => path === MODEL_PATH && failing.has(host) });
    const [before] = ids(world);
    world.lead(undefined);
    for (const { endpoints } of world.runtime.list()) for (const { host } of endpoints) failing.add(host);
    await world.restart(0);
    await world.clock.advance(120_000);
    expect(ids(world)).toEqual([before]);
    world.lead(1);
    await world.clock.until(() => ids(world).length === 1 && ids(world)[0] !== before, 300_000);
    expect(ids(world)).not.toContain(before);
    await world.reach('primary', 'ready', 120_000);
    await world.clock.until(() => seenBy(world, 0)?.admission.kind === 'open', 10_000);
    expect(seenBy(world, 0)?.admission.kind).toBe('open');
  });

  test('no controller sends requests to a pod whose model answers nonsense, also while nobody leads', async () => {
    const world = createWorld({ replicas: 2, readyMs: () => 5000, nonsense: () => true });
    world.setModel('a.gguf', 'present');
    world.edit('primary', document('a.gguf'));
    await world.clock.until(() => world.runtime.list().some(({ phase }) => phase === 'running'), 20_000);
    world.lead(undefined);
    const kinds = new Set<string | undefined>();
    for (let second = 0; second < 120; second += 1) {
      await world.clock.advance(1000);
      for (const index of [0, 1]) kinds.add(seenBy(world, index)?.admission.kind);
    }
    expect(world.runtime.list()).toHaveLength(1);
    expect([...kinds]).toEqual(['park']);
  });

  test('where the model of one of several pods fails, each controller finds out which one', async () => {
    const failing = new Set<string>();
    const world = await serving({ errs: ({ host }, path) => path === MODEL_PATH && failing.has(host) }, { replicas: 2 });
    const hosts = () => seenBy(world, 1)?.targets.map(({ endpoint }) => endpoint.host) ?? [];
    await world.clock.until(() => hosts().length === 2, 60_000);
    const [first = '', ...others] = hosts();
    failing.add(first);
    await world.clock.until(() => hosts().length === 1, 120_000);
    expect(hosts()).toEqual(others);
  });
});

test('a controller that loses its lead in a pause of a pass begins nothing in it', async () => {
  let pauses = 0;
  const world = createWorld({
    replicas: 2,
    pauseMs: () => {
      pauses += 1;
      // The next pass sees the edit, and pauses before it acts.
      if (world.desired.size > 0 && pauses % 2 === 0) world.lead(1);
      return 20;
    },
  });
  world.setModel('a.gguf', 'present');
  await world.clock.advance(1000);
  const before = pauses;
  world.edit('primary', document('a.gguf'));
  await world.reach('primary', 'ready');
  expect(pauses).toBeGreaterThan(before);
  expect(world.leader()).toBe(1);
  expect(lines(lifeOf(world, 0))).not.toContain('Starting');
  expect(lines(lifeOf(world, 1))).toContain('Starting');
});
