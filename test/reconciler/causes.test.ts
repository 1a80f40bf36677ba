/** Whose request has caused a load or an eviction, and who learns of it. */
import { expect, test } from '@jest/globals';
import { viewMemory } from '../../src/api/manage/decide/slot-view.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

/** Two slots that load on demand, of which one fits. A request to the first one has loaded it. */
async function two(): Promise<World> {
  const world = createWorld({ env: { SVC_MEMORY_BUDGET: '1500' } });
  world.setModel('a.gguf', 'present', 1000);
  for (const name of ['primary', 'embed']) world.edit(name, { model: { default: 'a.gguf' }, load: 'on-demand' });
  world.life().traffic.ask(slotName('primary'), 10);
  await world.clock.advance(1000);
  return world;
}

test('memory goes to who is asked for, and both explanations name the caller to those who may know', async () => {
  const world = await two();
  const told = (name: string, names = true): string =>
    world.slot(name).explain(world.clock.now(), { readsLogs: names, nameOf: (caller) => (names ? caller : undefined) });
  const { id } = world.life().traffic.ask(slotName('embed'), 10);
  await world.clock.until(() => told('embed').includes('asked for by'), 5000);
  expect(told('embed')).toContain(`\n  asked for by caller "request:${id}"`);
  expect(told('embed', false)).not.toContain('asked for by');
  await world.reach('embed', 'ready');
  const gaveWay = '  gave way to slot "embed"';
  expect(`${told('primary')}\n`).toContain(`${gaveWay}, asked for by caller "request:${id}"\n`);
  expect(`${told('primary', false)}\n`).toContain(`${gaveWay}\n`);
  // Nothing of it is in what everyone may read.
  const { status, admission, memory } = world.slot('primary');
  expect(JSON.stringify([status, admission, world.life().reports.flatMap(({ entries }) => entries)])).not.toContain('request:');
  expect(JSON.stringify(viewMemory(memory))).not.toContain('request:');
  expect(world.life().reports.flatMap(({ caused = [] }) => caused)).toEqual([
    { slot: 'primary', caller: 'request:0', what: 'loads' },
    { slot: 'primary', caller: `request:${id}`, what: 'evictions' },
    { slot: 'embed', caller: `request:${id}`, what: 'loads' },
  ]);
  world.life().traffic.ask(slotName('primary'), 10);
  await world.reach('primary', 'ready');
  expect(told('primary')).not.toContain('gave way');
});

test('a restart after a crash is caused by nobody', async () => {
  const world = await two();
  for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
  await world.reach('primary', 'offline', 1000);
  const { answers } = world.life().traffic.ask(slotName('primary'), 10);
  await world.clock.until(() => answers.length > 0, 30_000);
  expect([
    answers,
    world
      .life()
      .reports.flatMap(({ entries }) => entries)
      .filter(({ message }) => message.startsWith('Started ')),
  ]).toEqual([['served'], [expect.anything(), expect.anything()]]);
  expect(world.life().reports.flatMap(({ caused = [] }) => caused)).toHaveLength(1);
});
