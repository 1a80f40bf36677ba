import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

let world: World;
const name = SlotName.parse('primary');
const TEXT = '# keep\n[model]\ndefault = "a"\n';
beforeEach(async () => {
  world = await startWorld();
  world.save(name, TEXT);
  world.save(SlotName.parse('embed'), '[model]\ndefault = "e"\n');
  await world.idle();
});
afterEach(() => world.close());

async function post(path: string, body: unknown) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(world.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

const spec = (model: string) => ({ model: { default: model } });

describe('POST /api/plan', () => {
  test('plans as if the documents replaced the current ones and changes nothing', async () => {
    const { body } = await post('/api/plan', { slots: [{ name: 'primary', spec: spec('b') }], prune: true });
    expect(body).toEqual({
      text: 'apply "primary"\nstop "embed"',
      changes: [
        { slot: 'primary', action: 'apply', because: 'specChanged', message: 'apply "primary"' },
        { slot: 'embed', action: 'stop', because: 'specChanged', message: 'stop "embed"' },
      ],
      failing: [],
    });
    expect(world.slots.texts.get(name)).toBe(TEXT);
  });

  test('plans what the controller would do now if no documents are given', async () => {
    expect(await post('/api/plan', {})).toMatchObject({ status: 200, body: { text: 'Nothing to do', changes: [] } });
  });
});

describe('POST /api/apply', () => {
  test('reports the result for each slot and does not touch the text of an equal document', async () => {
    const slots = [
      { name: 'primary', spec: spec('a') },
      { name: 'embed', spec: spec('e2') },
      { name: 'mine', spec: { provider: 'gguf', ...spec('m') } },
    ];
    expect((await post('/api/apply', { slots })).body).toEqual({
      dry_run: false,
      slots: [
        { name: 'primary', result: 'unchanged' },
        { name: 'embed', result: 'updated' },
        { name: 'mine', result: 'created' },
      ],
    });
    expect(world.slots.texts.get(name)).toBe(TEXT);
    expect(world.slots.texts.size).toBe(3);
  });

  test('returns the same for a dry run and writes nothing', async () => {
    const slots = [{ name: 'mine', spec: { provider: 'gguf', ...spec('m') } }];
    expect((await post('/api/apply', { slots, prune: true, dry_run: true })).body).toEqual({
      dry_run: true,
      slots: [
        { name: 'mine', result: 'created' },
        { name: 'primary', result: 'deleted' },
        { name: 'embed', result: 'deleted' },
      ],
    });
    expect([...world.slots.texts.keys()]).toEqual(['primary', 'embed']);
  });

  test('writes nothing if a document is invalid, stale or listed twice', async () => {
    const good = { name: 'embed', spec: spec('e2') };
    const refused = [
      [{ name: 'primary', spec: { model: {} } }, 422, 'slot.invalid'],
      [{ name: 'primary', spec: spec('b'), resource_version: 'old' }, 409, 'slot.conflict'],
      [{ name: 'embed', spec: spec('e3') }, 400, 'request.invalid'],
      [{ name: 'UPPER', spec: spec('b') }, 400, 'request.invalid'],
    ] as const;
    for (const [slot, status, code] of refused) {
      expect(await post('/api/apply', { slots: [good, slot] })).toMatchObject({ status, body: { error: { code } } });
    }
    expect(world.slots.texts.get(SlotName.parse('embed'))).toContain('"e"');
  });

  test('refuses to prune with an empty list', async () => {
    expect(await post('/api/apply', { slots: [], prune: true })).toMatchObject({ status: 400, body: { error: { param: 'slots' } } });
    expect(world.slots.texts.size).toBe(2);
  });
});

describe('a store that fills in defaults, as the API server of a cluster does,', () => {
  test('has nothing to write where only defaults differ', async () => {
    world.slots.fillsDefaults = true;
    const [stored] = await world.slots.list();
    expect(Object.keys(stored?.document ?? {}).length).toBeGreaterThan(1);
    const { body } = await post('/api/apply', { slots: [{ name: 'primary', spec: spec('a') }] });
    expect(body.slots).toEqual([{ name: 'primary', result: 'unchanged' }]);
    expect(world.slots.texts.get(name)).toBe(TEXT);
    const other = await post('/api/apply', { slots: [{ name: 'primary', spec: { ...spec('a'), enabled: false } }] });
    expect(other.body.slots).toEqual([{ name: 'primary', result: 'updated' }]);
  });
});
