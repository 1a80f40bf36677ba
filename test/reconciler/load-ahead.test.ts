/** Slots that are loaded ahead of requests: by their schedule, with what memory is free, and until a request needs it. */
import { describe, expect, test } from '@jest/globals';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const MINUTE_MS = 60_000;
const PRIMARY = slotName('primary');
const MINE = slotName('mine');
/** The clock of a world begins on Wednesday, 18 May 2033 at 05:33:20 in Berlin. */
const SOON = 'Mon-Fri 05:40-06:00';
const ON_DEMAND: SlotDocument = { provider: 'gguf', load: 'on-demand', model: { default: 'a.gguf' } };

function begin(lifecycle: SlotDocument['lifecycle'], { env, ...options }: WorldOptions = {}, document: Partial<SlotDocument> = {}): World {
  const world = createWorld({ env: { SVC_TIME_ZONE: 'Europe/Berlin', SVC_MEMORY_BUDGET: '1500', ...env }, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { ...ON_DEMAND, lifecycle, ...document });
  world.edit('mine', { ...ON_DEMAND, model: { default: 'b.gguf' }, lifecycle: { idleTimeout: '2m' } });
  return world;
}
const running = (world: World): readonly string[] => world.runtime.list().map(({ slot }) => slot);
const stateOf = (world: World): string => world.slot('primary').status.state;

describe('a slot with a schedule', () => {
  test('is loaded when it begins, says why, and is unloaded when it ends', async () => {
    const world = begin({ warm: [SOON] });
    await world.clock.advance(6 * MINUTE_MS);
    expect([stateOf(world), running(world)]).toEqual(['offline', []]);
    await world.clock.advance(MINUTE_MS);
    expect([stateOf(world), running(world)]).toEqual(['ready', ['primary']]);
    const because = `The slot is loaded ahead of requests: "${SOON}" in time zone "Europe/Berlin"`;
    expect(world.changes()).toEqual([`start "svc-slot-primary" with model "a.gguf" on port 18080: ${because}`]);
    expect(world.slot('primary').explain(world.clock.now())).toContain(`because: ${because} [WarmScheduled]`);
    await world.clock.advance(20 * MINUTE_MS);
    expect([stateOf(world), running(world)]).toEqual(['offline', []]);
    await world.clock.advance(60 * MINUTE_MS);
    expect(world.changes()).toHaveLength(2);
  });

  test('is loaded at the second at which it begins', async () => {
    const world = begin({ warm: [SOON] });
    await world.clock.advance(6 * MINUTE_MS + 39_000);
    expect(running(world)).toEqual([]);
    await world.clock.advance(1500);
    expect(running(world)).toEqual(['primary']);
  });

  test('is loaded after its clock has jumped over the beginning, and unloaded after it has jumped over the end', async () => {
    const world = begin({ warm: [SOON] });
    await world.clock.advance(1000);
    world.clock.stepWall(10 * MINUTE_MS);
    await world.clock.advance(16_000);
    expect(running(world)).toEqual(['primary']);
    world.clock.stepWall(60 * MINUTE_MS);
    await world.clock.advance(16_000);
    expect(running(world)).toEqual([]);
    world.clock.stepWall(-60 * MINUTE_MS);
    await world.clock.advance(16_000);
    expect(running(world)).toEqual(['primary']);
  });

  test('is not unloaded after its idle time, and is when the schedule ends', async () => {
    const world = begin({ warm: [SOON], idleTimeout: '1m' }, {}, { load: 'always' });
    await world.clock.advance(20 * MINUTE_MS);
    expect([stateOf(world), world.changes().length]).toEqual(['ready', 3]);
    expect(world.slot('primary').explain(world.clock.now())).toContain('[WarmScheduled]');
    await world.clock.advance(8 * MINUTE_MS);
    expect(running(world)).toEqual([]);
  });

  test('is kept for its idle time after a request, and then ends with it', async () => {
    const world = begin({ warm: [SOON], idleTimeout: '10m' });
    await world.clock.advance(25 * MINUTE_MS);
    world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(9 * MINUTE_MS);
    expect(running(world)).toEqual(['primary']);
    await world.clock.advance(2 * MINUTE_MS);
    expect(running(world)).toEqual([]);
  });

  test('rests while others have the memory, and is loaded when it is free', async () => {
    const world = begin({ warm: [SOON] });
    await world.clock.advance(6 * MINUTE_MS);
    world.life().traffic.ask(MINE, 100);
    await world.clock.advance(1.5 * MINUTE_MS);
    expect(running(world)).toEqual(['mine']);
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', status: 'False' }));
    expect(world.slot('primary').explain(world.clock.now())).toContain(
      'no request has asked for it; to load it ahead of requests, no memory is free [NotAskedFor]',
    );
    await world.clock.advance(2 * MINUTE_MS);
    expect(running(world)).toEqual(['primary']);
  });

  test.each([
    ['while it loads', 6.8],
    ['once it is loaded', 9],
  ])('gives its memory to a request at once %s, and gets it back', async (_, minutes) => {
    const world = begin({ warm: [SOON] }, { readyMs: (model) => (model.endsWith('a.gguf') ? MINUTE_MS : 50) });
    await world.clock.advance(minutes * MINUTE_MS);
    expect(running(world)).toEqual(['primary']);
    const request = world.life().traffic.ask(MINE, 100);
    await world.clock.advance(2000);
    expect(request.answers).toEqual(['served']);
    await world.clock.advance(4 * MINUTE_MS);
    expect([running(world), stateOf(world)]).toEqual([['primary'], 'ready']);
  });

  test('is one for those who preview an edit', async () => {
    const world = begin({});
    await world.clock.advance(8 * MINUTE_MS);
    const edit: SlotDocument = { ...ON_DEMAND, lifecycle: { warm: [SOON] } };
    const { text } = await world.life().loop.preview(new Map([[PRIMARY, edit]]));
    expect(text).toContain(`The slot is loaded ahead of requests: "${SOON}"`);
    expect(running(world)).toEqual([]);
  });

  test('is off if the slot is', async () => {
    const world = begin({ warm: ['00:00-24:00'] }, {}, { enabled: false });
    await world.clock.advance(MINUTE_MS);
    expect(running(world)).toEqual([]);
  });

  test('is kept over a restart of the controller', async () => {
    const world = begin({ warm: ['00:00-24:00'] });
    await world.clock.advance(MINUTE_MS);
    const before = world.runtime.list().map(({ id }) => id);
    await world.restart();
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.runtime.list().map(({ id }) => id)).toEqual(before);
  });
});
