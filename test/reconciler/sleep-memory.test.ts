/** The memory of servers that sleep, and stops that await other clients, through the whole loop. */
import { describe, expect, test } from '@jest/globals';
import type { Provider } from '../../src/providers/provider.ts';
import {
  begin,
  calm,
  ids,
  sleepingOf,
  actionsOf,
  explain,
  fallAsleep,
  PRIMARY,
  MINE,
  IDLE,
  HARDWARE,
  type Servers,
} from './sleeping-world.ts';

describe('the memory of a server that sleeps', () => {
  test('stays counted, and the server is stopped when another slot needs it', async () => {
    const world = begin(calm(), { env: { SVC_MEMORY_BUDGET: '1500' } });
    await fallAsleep(world);
    world.edit('mine', { ...IDLE, load: 'on-demand', model: { default: 'b.gguf' } });
    await world.clock.advance(1000);
    const request = world.life().traffic.ask(MINE, 100);
    await world.clock.advance(5000);
    expect([request.answers, world.runtime.list().map(({ slot }) => slot)]).toEqual([['served'], ['mine']]);
    expect(world.slot('primary').status.state).toBe('offline');
  });

  test('on a device is free if the definition says so: two servers take turns on it without a stop', async () => {
    const onDevice: Partial<Provider> = { estimateMemory: (_name, _spec, { sizeBytes }) => ({ hostBytes: 0, deviceBytes: sizeBytes }) };
    const servers = { ...calm(), hostBytes: (bytes: number) => bytes };
    const host = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined, hardware: HARDWARE };
    const world = begin(servers, { host, provider: onDevice, env: { SVC_MEMORY_BUDGET: '5000' } }, { backend: 'rocm' });
    const first = await fallAsleep(world);
    world.edit('mine', { ...IDLE, backend: 'rocm', load: 'on-demand', model: { default: 'b.gguf' } });
    await world.clock.advance(1000);
    const mine = world.life().traffic.ask(MINE, 100);
    await world.clock.advance(5000);
    expect([mine.answers, ids(world).length, [...servers.asleep]]).toEqual([['served'], 2, [first]]);
    await world.clock.until(() => sleepingOf(world, 'mine')?.status === 'True', 40_000);
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(5000);
    expect([request.answers, ids(world).length, servers.asleep.has(first)]).toEqual([['served'], 2, false]);
    expect(actionsOf(world).filter((text) => text.startsWith('stop'))).toEqual([]);
  });

  test('on a device is taken from an idle server before a sleeping one is woken', async () => {
    const onDevice: Partial<Provider> = { estimateMemory: (_name, _spec, { sizeBytes }) => ({ hostBytes: 0, deviceBytes: sizeBytes }) };
    const servers = { ...calm(), hostBytes: (bytes: number) => bytes };
    const host = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined, hardware: HARDWARE };
    const options = { host, provider: onDevice, env: { SVC_MEMORY_BUDGET: '5000' }, behaviour: { stopMs: () => [2000, 0] as const } };
    const world = begin(servers, options, { backend: 'rocm' });
    const first = await fallAsleep(world);
    const lifecycle = { idleTimeout: '10m' };
    world.edit('mine', { ...IDLE, backend: 'rocm', load: 'on-demand', model: { default: 'b.gguf' }, lifecycle });
    await world.clock.advance(1000);
    world.life().traffic.ask(MINE, 100);
    await world.clock.advance(20_000);
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(1000);
    expect([request.answers, servers.asleep.has(first)]).toEqual([[], true]);
    expect(explain(world)).toContain('[MemoryNotFree]');
    await world.clock.advance(10_000);
    expect([request.answers, world.runtime.list().map(({ slot }) => slot)]).toEqual([['served'], ['primary']]);
    expect(ids(world)).toEqual([first]);
  });

  test('of the host that is too small for its sleep leads to a stop', async () => {
    const servers = { ...calm(), hostBytes: () => 9000 };
    const world = begin(servers, { env: { SVC_MEMORY_BUDGET: '1500' } });
    await world.reach('primary', 'ready');
    await world.reach('primary', 'offline');
    expect(servers.asleep.size).toBe(0);
  });
});

describe('requests of clients that the gateway does not know', () => {
  const drained = { lifecycle: { idleTimeout: '1h', drainTimeout: '20s', startTimeout: '20s' } } as const;
  test('end before their server is stopped', async () => {
    let count = 2;
    const world = begin({ ...calm(), count: () => ({ count }) }, {}, drained);
    await world.reach('primary', 'ready');
    world.edit('primary', { ...IDLE, ...drained, enabled: false });
    await world.clock.advance(10_000);
    expect([world.slot('primary').status.state, ids(world).length]).toEqual(['unloading', 1]);
    expect(explain(world)).toContain('The server has 2 requests of other clients');
    count = 0;
    await world.clock.advance(3000);
    expect(ids(world)).toEqual([]);
  });

  test('are awaited for the drain time and no longer', async () => {
    const world = begin({ ...calm(), count: () => ({ count: 1 }) }, {}, drained);
    await world.reach('primary', 'ready');
    world.edit('primary', { ...IDLE, ...drained, enabled: false });
    await world.clock.advance(19_000);
    expect(ids(world)).toHaveLength(1);
    await world.clock.advance(3000);
    expect(ids(world)).toEqual([]);
  });

  test('delay a stop by nothing where the metric is unusable, which is said', async () => {
    const world = begin({ ...calm(), count: () => ({ problem: '"GET /metrics" was answered with status 404' }) }, {}, drained);
    await world.reach('primary', 'ready');
    world.edit('primary', { ...IDLE, ...drained, enabled: false });
    const seen = await world.clock.until(() => explain(world).includes('[MetricUnusable]'), 5000);
    expect([seen, explain(world)]).toEqual([true, expect.stringContaining('"GET /metrics" was answered with status 404')]);
    await world.clock.advance(3000);
    expect(ids(world)).toEqual([]);
  });

  test('keep an idle server awake', async () => {
    let count = 1;
    const servers: Servers = { ...calm(), count: () => ({ count }) };
    const world = begin(servers);
    await world.reach('primary', 'ready');
    await world.clock.advance(60_000);
    expect([servers.asleep.size, ids(world).length]).toEqual([0, 1]);
    count = 0;
    await world.clock.advance(30_000);
    expect(servers.asleep.size).toBe(1);
  });
});
