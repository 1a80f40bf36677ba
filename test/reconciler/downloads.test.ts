import { describe, expect, test } from '@jest/globals';
import { createWorld, type World } from '../support/simulation/world.ts';

const pulling = (world: World): readonly string[] =>
  [...world.life().journal.open].filter(({ name, signal }) => name === 'pullModel' && !signal.aborted).map(({ key }) => key);
const failures = (world: World): readonly string[] =>
  world.life().reports.flatMap(({ entries }) => entries.flatMap(({ kind, message }) => (kind === 'failure' ? [message] : [])));

function createDownloads(): World {
  const world = createWorld({ modelPullMs: () => 60_000 });
  world.setModel('a.gguf', 'pullable');
  world.setModel('b.gguf', 'present');
  return world;
}

describe('a download', () => {
  test('is cancelled once when an edit asks for another model, without a failure, and begins again when it is needed', async () => {
    const world = createDownloads();
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.reach('primary', 'pulling');
    expect(pulling(world)).toEqual(['pullModel:a.gguf']);
    world.edit('primary', { model: { default: 'b.gguf' } });
    await world.reach('primary', 'ready');
    expect(pulling(world)).toEqual([]);
    await world.clock.advance(120_000);
    expect(world.changes().filter((change) => change.startsWith('cancel'))).toHaveLength(1);
    expect(failures(world)).toEqual([]);
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.clock.advance(1000);
    expect(pulling(world)).toEqual(['pullModel:a.gguf']);
    await world.clock.until(() => world.slot('primary').status.model === 'a.gguf', 120_000);
    expect(world.slot('primary').status).toMatchObject({ model: 'a.gguf' });
  });

  test.each([
    ['first', 'primary'],
    ['last', 'mine'],
  ])('goes on when the %s of three slots that wait for it is switched off', async (_which, name) => {
    const world = createDownloads();
    const document = { provider: 'gguf', model: { default: 'a.gguf' } } as const;
    for (const each of ['primary', 'embed', 'mine']) world.edit(each, document);
    await world.reach('primary', 'pulling');
    world.edit(name, { ...document, enabled: false });
    await world.clock.advance(5000);
    expect(pulling(world)).toEqual(['pullModel:a.gguf']);
    expect(world.changes().filter((change) => change.startsWith('cancel'))).toEqual([]);
  });

  test('goes on while another slot needs it', async () => {
    const world = createDownloads();
    world.edit('primary', { model: { default: 'a.gguf' } });
    world.edit('mine', { provider: 'gguf', model: { default: 'a.gguf' } });
    await world.reach('primary', 'pulling');
    world.remove('primary');
    await world.clock.advance(20_000);
    expect(pulling(world)).toEqual(['pullModel:a.gguf']);
    await world.reach('mine', 'ready', 120_000);
  });

  test('that fails counts against every slot that waits for it', async () => {
    let fails = true;
    const world = createWorld({
      modelPullMs: () => 1000,
      modelPullFailure: () => (fails ? { kind: 'retry', reason: 'ModelPullFailed', message: 'The line is dead' } : undefined),
    });
    world.setModel('a.gguf', 'pullable');
    for (const name of ['primary', 'mine']) world.edit(name, { provider: 'gguf', model: { default: 'a.gguf' } });
    await world.clock.advance(1500);
    for (const name of ['primary', 'mine']) expect(world.slot(name).explain(world.clock.now())).toContain('The line is dead');
    fails = false;
    for (const name of ['primary', 'mine']) await world.reach(name, 'ready');
  });
});
