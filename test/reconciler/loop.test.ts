import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, IMAGE, slotName, type World } from '../support/simulation/world.ts';

const MODEL = { default: 'a.gguf' };
const OTHER = { default: 'b.gguf' };

function worldWithModels(options: Parameters<typeof createWorld>[0] = {}): World {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.setModel('b.gguf', 'present');
  return world;
}

const idsOf = (world: World): readonly string[] => world.runtime.list().map(({ id }) => id);
const modelServed = (world: World): string => world.slot('primary').status.model;

describe('the loop', () => {
  test('makes a saved slot ready, and then plans nothing', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'ready');
    expect(world.runtime.list()).toMatchObject([{ name: 'svc-slot-primary', phase: 'running', endpoints: [{ port: 18_080 }] }]);
    await expectRest(world);
  });

  test('reports an alias that two slots claim, and serves both', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: { ...MODEL, aliases: ['gpt'] } });
    world.edit('embed', { model: { ...OTHER, aliases: ['gpt'] } });
    await world.reach('primary', 'ready');
    const message = 'Requests for "gpt" go to this slot or to "embed": use another alias';
    const { status, explain } = world.slot('primary');
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'SpecValid', status: 'True', reason: 'AliasConflict', message }),
    );
    expect(explain(world.clock.now())).toContain(`  note: ${message} [AliasConflict]`);
    world.edit('embed', { model: OTHER });
    await world.clock.advance(1000);
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ type: 'SpecValid', reason: 'Parsed' }));
  });

  test('pulls what is missing before it starts anything', async () => {
    const world = worldWithModels({ modelPullMs: () => 5000, behaviour: { pullMs: () => 3000 } });
    world.runtime.removeImage(IMAGE.reference);
    world.setModel('a.gguf', 'pullable');
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'pulling');
    await world.clock.advance(1500);
    expect(world.slot('primary').status.progress).toMatchObject({ doneBytes: 0 });
    expect(world.runtime.list()).toEqual([]);
    await world.reach('primary', 'ready');
    await expectRest(world);
  });

  test('does not let a slow pull hold up another slot', async () => {
    const world = worldWithModels({ modelPullMs: () => 600_000 });
    world.setModel('slow.gguf', 'pullable');
    world.edit('primary', { model: { default: 'slow.gguf' } });
    world.edit('embed', { model: MODEL });
    await world.reach('embed', 'ready', 2000);
    expect(world.slot('primary').status.state).toBe('pulling');
    world.edit('primary', { enabled: false, model: { default: 'slow.gguf' } });
    await world.reach('primary', 'offline', 2000);
  });

  test('adopts what a controller before it had started, by id, and serves at once', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'ready');
    const before = idsOf(world);
    await world.restart();
    await world.reach('primary', 'ready', 1000);
    expect(idsOf(world)).toEqual(before);
    await expectRest(world);
  });

  test('tells of each workload that disappears while it leads', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL });
    for (let times = 1; times <= 2; times += 1) {
      await world.reach('primary', 'ready');
      for (const { id } of world.runtime.list()) world.runtime.vanish(id);
      await world.clock.advance(100);
      const told = world.life().reports.flatMap(({ entries }) => entries.filter(({ kind }) => kind === 'failure'));
      expect(told.map(({ message }) => message)).toEqual(
        Array.from({ length: times }, () => 'The workload disappeared without being stopped'),
      );
    }
  });

  test('unloads a slot that is disabled, and one that is removed, when their requests have ended', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL });
    world.edit('embed', { model: MODEL });
    await world.reach('primary', 'ready');
    await world.reach('embed', 'ready');
    const requests = ['primary', 'embed'].map((name) => world.life().traffic.ask(slotName(name), 5000));
    await world.clock.advance(100);
    world.edit('primary', { enabled: false, model: MODEL });
    world.remove('embed');
    await world.clock.advance(4000);
    expect(world.runtime.list()).toHaveLength(2);
    await world.reach('primary', 'offline');
    expect(requests.map(({ answers }) => answers)).toEqual([['served'], ['served']]);
    expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.disabled' });
    expect(world.runtime.list()).toEqual([]);
    await expectRest(world);
  });

  test('ends the requests that outlast the drain time', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL, lifecycle: { drainTimeout: '2s' } });
    await world.reach('primary', 'ready');
    const request = world.life().traffic.ask(slotName('primary'), 60_000);
    await world.clock.advance(100);
    world.edit('primary', { enabled: false, model: MODEL, lifecycle: { drainTimeout: '2s' } });
    await world.clock.advance(1900);
    expect(request.answers).toEqual([]);
    await world.reach('primary', 'offline');
    expect(request.answers).toEqual(['failed']);
  });

  test('keeps the last good spec in force when a text is spoilt, and says where', async () => {
    const world = worldWithModels();
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'ready');
    world.spoil('primary', 'Write a model id');
    await world.clock.advance(100);
    const conditions = world.slot('primary').status.conditions;
    const invalid = conditions.find(({ type }) => type === 'SpecValid');
    expect(invalid).toMatchObject({ status: 'False', message: expect.stringContaining('/slots/x.toml:3:7') });
    expect(world.slot('primary')).toMatchObject({ status: { state: 'ready' }, admission: { kind: 'open' } });
    await expectRest(world);
  });

  test('waits for a missing model to be put in place, and says so', async () => {
    const world = createWorld();
    world.edit('primary', { model: MODEL });
    await world.clock.advance(100);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'offline' }, admission: { kind: 'refuse', code: 'slot.stalled' } });
    expect(world.slot('primary').explain(world.clock.now())).toContain('Put the model "a.gguf" in place');
    world.setModel('a.gguf', 'present');
    await world.reach('primary', 'ready');
  });

  test('takes the next port when one is taken by somebody else', async () => {
    const world = worldWithModels();
    world.runtime.foreignPorts.add(18_080);
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'ready', 1000);
    expect(world.slot('primary').status.endpoint).toBe('http://127.0.0.1:18081');
    await expectRest(world);
  });

  test('goes on serving while the runtime cannot be asked, and says that it does not know', async () => {
    let down: string | undefined;
    const world = worldWithModels({ behaviour: { unreachable: () => down } });
    world.edit('primary', { model: MODEL });
    await world.reach('primary', 'ready');
    down = 'Connection refused';
    world.edit('primary', { model: OTHER });
    await world.clock.advance(1000);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'ready' }, admission: { kind: 'open' } });
    expect(world.slot('primary').status.conditions[0]).toMatchObject({ type: 'Ready', status: 'Unknown', reason: 'RuntimeUnreachable' });
    down = undefined;
    await world.clock.until(() => modelServed(world) === 'b.gguf', 60_000);
    expect(modelServed(world)).toBe('b.gguf');
    await expectRest(world);
  });
});
