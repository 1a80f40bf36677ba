import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import type { SlotName } from '../../src/schema/words/names.ts';

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
    const { changes, text, failing } = await world.life().loop.preview(
      new Map([
        [PRIMARY, undefined],
        [slotName('embed'), { model: { default: 'a.gguf' } }],
        [slotName('mine'), { model: { default: 'unheard-of' } }],
      ]),
    );
    expect(changes.map(({ slot, action }) => `${action} ${slot}`)).toEqual(['stop primary', 'apply embed']);
    expect(text).toContain('Slot "mine" cannot be loaded: provider: Set "provider" to one of');
    expect(failing).toMatchObject([{ slot: 'mine', reason: 'SpecInvalid' }]);
    await expectRest(world);
  });

  test.each(['always', 'on-demand'] as const)('names a slot that could not be loaded first, if it loads "%s"', async (load) => {
    const world = await serving();
    const next = await world.life().loop.preview(new Map([[PRIMARY, { load, model: { default: 'unheard-of' } }]]));
    expect(next.failing).toMatchObject([{ slot: 'primary', reason: 'ModelMissing' }]);
    expect(next.text).toMatch(/^Slot "primary" cannot be loaded: .* \[ModelMissing\]\n/);
    expect((await world.life().loop.preview(new Map([[PRIMARY, { model: { default: 'b.gguf' } }]]))).failing).toEqual([]);
  });

  test('names slots that an edit does not touch only if the edit makes them fail; without an edit, all that fail', async () => {
    const world = await serving();
    world.edit('embed', { model: { default: 'unheard-of' } });
    await world.reach('embed', 'offline');
    const failingAfter = async (...edit: Parameters<Map<SlotName, SlotDocument>['set']>[]) =>
      (await world.life().loop.preview(new Map(edit))).failing.map(({ slot, reason }) => `${slot} ${reason}`);
    expect(await failingAfter([PRIMARY, { model: { default: 'b.gguf' } }])).toEqual([]);
    expect(await failingAfter([slotName('embed'), { priority: 1, model: { default: 'unheard-of' } }])).toEqual(['embed ModelMissing']);
    expect(await failingAfter()).toEqual(['embed ModelMissing']);
  });

  test('plans for a slot that is asked for as if a request waited for it', async () => {
    const world = await serving();
    const edit = new Map([[PRIMARY, { load: 'on-demand', model: { default: 'b.gguf' } } as const]]);
    world.edit('primary', { load: 'on-demand', enabled: false, model: { default: 'b.gguf' } });
    await world.reach('primary', 'offline');
    const enabled = await world.life().loop.preview(edit, new Set([PRIMARY]));
    expect(enabled.changes).toMatchObject([{ slot: 'primary', action: 'pullModel' }]);
  });

  test.each<[string, Partial<SlotDocument> | undefined, Partial<SlotDocument>, readonly string[]]>([
    ['counts failures from zero after an edit', undefined, { restartedAt: '2026-01-01T00:00:00Z' }, ['apply primary']],
    ['goes on counting failures when only replicas are added', undefined, { replicas: 2 }, []],
    ['goes on counting failures when the slot had no replicas', { replicas: 0 }, { replicas: 1 }, []],
  ])('%s', async (_, before, after, expected) => {
    const world = createWorld({ replicas: 1 });
    world.setModel('a.gguf', 'present');
    const edit = (part: Partial<SlotDocument>) => world.edit('primary', { model: { default: 'a.gguf' }, ...part });
    edit({});
    for (let crashes = 0; crashes < 5; crashes += 1) {
      await world.reach('primary', 'ready');
      for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
      await world.clock.advance(100);
    }
    await world.clock.advance(60_000);
    expect(world.slot('primary').status.conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', reason: 'CrashLoop' }));
    if (before !== undefined) edit(before);
    await world.clock.advance(1000);
    const { changes } = await world.life().loop.preview(new Map([[PRIMARY, { model: { default: 'a.gguf' }, ...after }]]));
    expect(changes.map(({ slot, action }) => `${action} ${slot}`)).toEqual(expected);
  });

  test('is empty when nothing would change', async () => {
    const world = await serving();
    expect(await world.life().loop.preview(new Map())).toEqual({ text: 'No action required', changes: [], failing: [] });
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
