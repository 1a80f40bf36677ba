import { describe, expect, test } from '@jest/globals';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

async function serving(): Promise<World> {
  const world = createWorld();
  for (const model of ['a.gguf', 'b.gguf', 'embed']) world.setModel(model, 'present');
  world.edit('primary', { model: { default: 'a.gguf', aliases: ['gpt', 'embed'] } });
  world.edit('embed', { model: { default: 'a.gguf' } });
  await world.reach('primary', 'ready');
  await world.reach('embed', 'ready');
  return world;
}

const names = (world: World, key: string): readonly string[] | undefined => world.life().board.current().names.get(key);

describe('the board', () => {
  test('knows a slot by its own name first, then by model and alias', async () => {
    const world = await serving();
    expect(names(world, 'primary')).toEqual(['primary']);
    expect(names(world, 'embed')).toEqual(['embed', 'primary']);
    expect(names(world, 'a.gguf')).toEqual(['primary', 'embed']);
    expect(names(world, 'gpt')).toEqual(['primary']);
  });

  test('knows a slot by the model that still answers, too, while another one loads', async () => {
    const world = createWorld({ readyMs: (model) => (model.includes('b.gguf') ? 10_000 : 50) });
    for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.reach('primary', 'ready');
    world.edit('primary', { model: { default: 'b.gguf' } });
    await world.clock.advance(1000);
    expect([names(world, 'a.gguf'), names(world, 'b.gguf')]).toEqual([['primary'], ['primary']]);
    await world.clock.advance(20_000);
    expect([names(world, 'a.gguf'), names(world, 'b.gguf')]).toEqual([undefined, ['primary']]);
  });

  test('has the slots that are declared now, whether some left or others took their place', async () => {
    const world = await serving();
    const slots = (): readonly string[] => [...world.life().board.current().slots.keys()];
    expect([slots(), names(world, 'embed')]).toEqual([
      ['primary', 'embed'],
      ['embed', 'primary'],
    ]);
    world.remove('embed');
    await world.clock.advance(10);
    expect([slots(), names(world, 'embed')]).toEqual([['primary'], ['primary']]);
    world.remove('primary');
    world.edit('other', { model: { default: 'a.gguf' } });
    await world.clock.advance(10);
    expect([slots(), names(world, 'a.gguf'), names(world, 'gpt')]).toEqual([['other'], ['other'], undefined]);
  });

  test('loses a target before its workload is stopped', async () => {
    const world = await serving();
    const order: string[] = [];
    world.life().board.subscribe((view) => {
      const open = (view.slots.get(slotName('primary'))?.targets.length ?? 0) > 0;
      const runs = world.runtime.list().some(({ slot, phase }) => slot === 'primary' && phase === 'running');
      order.push(`${open ? 'open' : 'shut'} ${runs ? 'runs' : 'gone'}`);
    });
    world.edit('primary', { enabled: false, model: { default: 'a.gguf' } });
    await world.reach('primary', 'offline');
    expect(order).not.toContain('open gone');
    expect(order).toContain('shut runs');
  });
});

describe('the timeline', () => {
  test('tells every move with its cause, numbered without a gap', async () => {
    const world = await serving();
    const entries = world.life().reports.flatMap((report) => report.entries);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    const moves = entries.filter(({ kind, slot }) => kind === 'state' && slot === 'primary');
    expect(moves.map(({ to }) => to)).toEqual(['starting', 'warming', 'ready']);
    expect(moves[1]?.cause).toContain('ProbeNotPassed: ');
  });

  test('does not tell of moves that follow from requests, which metrics count all the same', async () => {
    const world = await serving();
    const told = (): readonly string[] =>
      world.life().reports.flatMap(({ entries }) => entries.flatMap(({ slot, message }) => (slot === 'primary' ? [message] : [])));
    const before = told();
    for (let requests = 0; requests < 20; requests += 1) {
      world.life().traffic.ask(slotName('primary'), 1000);
      await world.clock.advance(5000);
    }
    expect(told()).toEqual(before);
    const moves = world
      .life()
      .reports.flatMap((report) => report.moves ?? [])
      .filter(({ slot }) => slot === 'primary');
    expect(moves.map(({ from, to }) => `${from} ${to}`).slice(0, 5)).toEqual([
      'starting warming',
      'warming ready',
      'ready serving',
      'serving idle',
      'idle serving',
    ]);
    expect(moves).toHaveLength(2 + 2 * 20);
  });

  test('says in plain words what was done and why', async () => {
    const world = await serving();
    world.edit('primary', { enabled: false, model: { default: 'a.gguf' } });
    await world.reach('primary', 'offline');
    const told = world.life().reports.flatMap(({ entries }) => entries.filter(({ slot }) => slot === 'primary'));
    expect(told.map(({ message }) => message.replaceAll(/memory-\d+-/g, ''))).toEqual([
      'Change applied (generation 1)',
      'The slot is "starting"',
      'Starting "svc-slot-primary" with model "a.gguf" on port 18080: No workload is running for this slot',
      'Started "svc-slot-primary" with model "a.gguf" on port 18080',
      'From "starting" to "warming"',
      'From "warming" to "ready"',
      'Change applied (generation 2)',
      'From "ready" to "unloading"',
      'Stopping "svc-slot-primary": Slot is off: "enabled" is false',
      'Stopped "svc-slot-primary"',
      'From "unloading" to "offline"',
    ]);
  });

  test('is silent while nothing changes', async () => {
    const world = await serving();
    await world.clock.advance(5000);
    const { length } = world.life().reports;
    await world.clock.advance(120_000);
    expect(world.life().reports).toHaveLength(length);
  });
});
