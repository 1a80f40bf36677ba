/** What the loop lets read ahead, and what it tells about it, while slots swap, wait for memory and have a schedule. */
import { expect, test } from '@jest/globals';
import type { ReadAhead } from '../../src/reconciler/ports.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const SIZE = 1000;
const PRIMARY = slotName('primary');
/** Room for one model. */
const BUDGET = { SVC_MEMORY_BUDGET: '1500', SVC_TIME_ZONE: 'Europe/Berlin' };

function begin(options: WorldOptions = {}): World & { readonly listed: string[]; progress(doneBytes: number): void } {
  /** Each change of what is listed. */
  const listed: string[] = [];
  let report: Parameters<ReadAhead['follow']>[1] = () => undefined;
  const readAhead: ReadAhead = {
    follow(models, onProgress) {
      report = onProgress;
      const ids = models.map(({ model }) => model.id).join(' ');
      if (ids !== (listed.at(-1) ?? '')) listed.push(ids);
    },
  };
  const world = createWorld({ env: BUDGET, host: { memoryTotalBytes: 10_000, memoryAvailableBytes: 9000 }, readAhead, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present', SIZE);
  return { ...world, listed, progress: (doneBytes) => report(PRIMARY, { model: 'b.gguf', doneBytes, totalBytes: SIZE }, doneBytes) };
}

const explain = (world: World): string => world.slot('primary').explain(world.clock.now());

test('The model of a swap is read while the old server finishes its requests, and no longer once it starts', async () => {
  const world = begin();
  world.edit('primary', { model: { default: 'a.gguf' } });
  await world.reach('primary', 'ready');
  world.life().traffic.ask(PRIMARY, 5000);
  await world.clock.advance(10);
  world.edit('primary', { model: { default: 'b.gguf' } });
  await world.clock.advance(1000);
  expect(world.listed).toEqual(['b.gguf']);
  world.progress(400);
  await world.clock.advance(1500);
  expect(explain(world)).toContain('model file read ahead: 400 B of 1000 B, b.gguf');
  await world.clock.advance(60_000);
  expect(world.slot('primary').status.model).toBe('b.gguf');
  expect(world.listed).toEqual(['b.gguf', '']);
});

test('It is no longer read when the edit is taken back, or when memory becomes short', async () => {
  const host = { memoryTotalBytes: 10_000, memoryAvailableBytes: 9000 };
  const world = begin({ host });
  world.edit('primary', { model: { default: 'a.gguf' } });
  await world.reach('primary', 'ready');
  world.life().traffic.ask(PRIMARY, 600_000);
  await world.clock.advance(10);
  world.edit('primary', { model: { default: 'b.gguf' } });
  await world.clock.advance(1000);
  host.memoryAvailableBytes = 1900;
  world.progress(100);
  await world.clock.advance(1500);
  expect(world.listed).toEqual(['b.gguf', '']);
  host.memoryAvailableBytes = 9000;
  await world.clock.advance(20_000);
  expect(world.listed).toEqual(['b.gguf', '', 'b.gguf']);
  world.edit('primary', { model: { default: 'a.gguf' } });
  await world.clock.advance(1000);
  expect(world.listed).toEqual(['b.gguf', '', 'b.gguf', '']);
});

test('The model of a request that waits for memory is read', async () => {
  const world = begin();
  world.edit('other', { model: { default: 'a.gguf' }, load: 'on-demand' });
  world.edit('primary', { model: { default: 'b.gguf' }, load: 'on-demand' });
  await world.clock.advance(1000);
  world.life().traffic.ask(slotName('other'), 60_000);
  await world.reach('other', 'serving');
  world.life().traffic.ask(PRIMARY, 10);
  await world.clock.advance(1000);
  expect(explain(world)).toMatch(/\[(?:InsufficientMemory|MemoryNotFree)\]/);
  expect(world.listed).toEqual(['b.gguf']);
  await world.clock.advance(120_000);
  expect(world.listed).toEqual(['b.gguf', '']);
});

test('The model of a schedule is read in the minute before it begins', async () => {
  const world = begin();
  // The clock of a world begins at 05:33:20.
  world.edit('primary', { model: { default: 'b.gguf' }, load: 'on-demand', lifecycle: { warm: ['Mon-Fri 05:40-06:00'] } });
  await world.clock.advance(5 * 60_000 + 35_000);
  expect(world.listed).toEqual([]);
  await world.clock.advance(10_000);
  expect(world.listed).toEqual(['b.gguf']);
  await world.clock.advance(60_000);
  expect(world.slot('primary').status.state).toBe('ready');
  expect(world.listed).toEqual(['b.gguf', '']);
});

test('Nothing is read by a controller that does not lead, and nothing in a cluster', async () => {
  const world = begin({ replicas: 1 });
  world.edit('primary', { model: { default: 'a.gguf' }, lifecycle: { swap: 'drain' } });
  await world.reach('primary', 'ready');
  world.life().traffic.ask(PRIMARY, 5000);
  world.edit('primary', { model: { default: 'b.gguf' }, lifecycle: { swap: 'drain' } });
  await world.clock.advance(60_000);
  expect(world.listed).toEqual([]);
});
