/** Servers that answer `GET` and nothing else, in simulated time: the hung ones are replaced, and the busy ones stay. */
import { expect, test } from '@jest/globals';
import type { Work } from '../../src/reconciler/ports.ts';
import type { Backend } from '../../src/schema/slot/provider-kinds.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

async function serving(options: WorldOptions, backend: Backend): Promise<World> {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, backend });
  await world.reach('primary', 'ready');
  return world;
}

test.each(['idle', 'busy'])(
  'a server that hangs on requests while it is %s is replaced within 30 s, though it answers "GET"',
  async (how) => {
    let hangs = false;
    const world = await serving({ hangs: () => hangs }, 'cpu');
    const [before] = world.runtime.list();
    const ask = () => world.life().traffic.ask(slotName('primary'), 5000);
    await world.clock.advance(9000);
    const requests = how === 'busy' ? [ask()] : [];
    hangs = true;
    const at = world.clock.now();
    expect(await world.clock.until(() => world.runtime.list().every(({ id }) => id !== before?.id), 120_000)).toBe(true);
    expect(world.clock.now() - at).toBeLessThan(30_000);
    if (before !== undefined) world.life().traffic.died(before.id);
    hangs = false;
    await world.clock.until(() => requests.every(({ answers }) => answers.length > 0), 60_000);
    expect(requests.flatMap(({ answers }) => answers)).toEqual(requests.map(() => 'served'));
    await expectRest(world);
  },
);

const BUSY: readonly (readonly [string, Backend, Work | undefined])[] = [
  ['computes a long prompt', 'cpu', undefined],
  ['may compute on a device that nothing counts', 'rocm', { cpuMs: 0, deviceMs: undefined }],
];

test.each(BUSY)('a server that %s for a minute stays', async (_how, backend, work) => {
  const world = await serving(work === undefined ? {} : { behaviour: { work: () => work } }, backend);
  const before = world.runtime.list().map(({ id }) => id);
  const request = world.life().traffic.ask(slotName('primary'), 60_000);
  await world.clock.advance(61_000);
  expect([request.answers, world.runtime.list().map(({ id }) => id)]).toEqual([['served'], before]);
});
