import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');

async function serving(): Promise<World> {
  const world = createWorld();
  world.setModel('a.gguf', 'present');
  world.setModel('b.gguf', 'pullable');
  world.edit('primary', { model: { default: 'a.gguf' } });
  await world.reach('primary', 'ready');
  return world;
}

describe('preview()', () => {
  test('tells what an edit would do, and does nothing', async () => {
    const world = await serving();
    const { changes, text } = await world.life().loop.preview(new Map([[PRIMARY, { model: { default: 'b.gguf' } }]]));
    expect(changes).toMatchObject([{ slot: 'primary', action: 'pullModel', because: 'ModelNotPresent' }]);
    expect(text).toContain('Slot "primary" is ready');
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
    expect(world.slot('primary').status.model).toBe('a.gguf');
  });

  test('tells what a removal, a new slot and a refused text would do', async () => {
    const world = await serving();
    const { changes, text } = await world.life().loop.preview(
      new Map([
        [PRIMARY, undefined],
        [slotName('embed'), { model: { default: 'a.gguf' } }],
        [slotName('mine'), { model: { default: 'unheard-of' } }],
      ]),
    );
    expect(changes.map(({ slot, action }) => `${action} ${slot}`)).toEqual(['stop primary', 'apply embed']);
    expect(text).toContain('Slot "mine" would be refused: provider: Set "provider" to one of');
    await expectRest(world);
  });

  test('is empty when nothing would change', async () => {
    const world = await serving();
    expect(await world.life().loop.preview(new Map())).toEqual({ text: 'No action required', changes: [] });
    const same = await world.life().loop.preview(new Map([[PRIMARY, { model: { default: 'a.gguf' } }]]));
    expect(same.changes).toEqual([]);
  });
});

describe('idle()', () => {
  test('resolves when there is nothing more to do', async () => {
    const world = await serving();
    world.edit('embed', { model: { default: 'a.gguf' } });
    let rested = false;
    void world
      .life()
      .loop.idle()
      .then(() => {
        rested = true;
      });
    expect(await world.clock.until(() => rested, 60_000)).toBe(true);
    expect(world.slot('embed').status.state).toBe('ready');
  });
});
