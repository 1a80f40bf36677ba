/** Idle servers that sleep instead of being stopped, and stops that await other clients: through the whole loop, with servers that do as they are told, or not. */
import { describe, expect, test } from '@jest/globals';
import type { Provider } from '../../src/providers/provider.ts';
import type { RequestCount } from '../../src/providers/provider-servers.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import type { Device, Hardware } from '../../src/schema/status/hardware.ts';
import { createWorld, FAKE_PROVIDER, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');
const MINE = slotName('mine');
const IDLE: SlotDocument = { provider: 'gguf', model: { default: 'a.gguf' }, lifecycle: { idleTimeout: '10s', startTimeout: '20s' } };
const GPU: Device = {
  id: 'gpu0',
  kind: 'gpu',
  vendor: 'amd',
  backends: ['rocm'],
  memory: { totalBytes: 1600, freeBytes: 1600 },
  unified: false,
};
const HARDWARE: Hardware = {
  source: { kind: 'machine' },
  cpu: { architecture: 'x64', threads: 8 },
  memory: undefined,
  devices: [GPU],
  programs: {},
};

interface Servers {
  readonly asleep: Set<string>;
  /** Default: it does as it is told. */
  enter?: () => Promise<string | undefined>;
  leave?: () => Promise<string | undefined>;
  hostBytes?: (bytes: number) => number;
  count?: () => RequestCount;
}

function begin(servers: Servers, options: WorldOptions = {}, document: Partial<SlotDocument> = {}): World {
  const nameAt = (port: number): string => world.runtime.list().find(({ endpoints }) => endpoints[0]?.port === port)?.id ?? '';
  const { hostBytes } = servers;
  const sleep: Provider['sleep'] = {
    appliesTo: () => true,
    ...(hostBytes === undefined ? {} : { hostBytes: (_spec, bytes) => hostBytes(bytes) }),
    async enter({ port }) {
      const problem = await servers.enter?.();
      if (problem === undefined) servers.asleep.add(nameAt(port));
      return problem;
    },
    async leave({ port }) {
      const problem = await servers.leave?.();
      if (problem === undefined) servers.asleep.delete(nameAt(port));
      return problem;
    },
  };
  const provider: Partial<Provider> = {
    sleep,
    async health(endpoint, ...asked) {
      if (servers.asleep.has(nameAt(endpoint.port))) return { kind: 'asleep', message: 'The server sleeps' };
      return await FAKE_PROVIDER.health(endpoint, ...asked);
    },
    ...(servers.count === undefined ? {} : { countRequests: async () => servers.count?.() ?? { count: 0 } }),
    ...options.provider,
  };
  const world: World = createWorld({ ...options, provider });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { ...IDLE, ...document });
  return world;
}
const calm = (): Servers => ({ asleep: new Set() });
const ids = (world: World): readonly string[] => world.runtime.list().map(({ id }) => id);
const sleepingOf = (world: World, name = 'primary') => world.slot(name).status.conditions.find(({ type }) => type === 'Sleeping');
const actionsOf = (world: World): readonly string[] => world.changes().map((text) => text.split(':')[0] ?? '');
const explain = (world: World): string => world.slot('primary').explain(world.clock.now());
const told = (world: World): readonly string[] =>
  world
    .lives()
    .flatMap(({ reports }) => reports)
    .flatMap(({ entries }) => entries.map(({ message }) => message));

async function fallAsleep(world: World): Promise<string> {
  await world.reach('primary', 'ready');
  await world.clock.until(() => sleepingOf(world)?.status === 'True', 40_000);
  return ids(world)[0] ?? '';
}

describe('an idle slot whose server can sleep', () => {
  test('sleeps after its idle time instead of being stopped, is idle and says so', async () => {
    const servers = calm();
    const world = begin(servers);
    await world.reach('primary', 'ready');
    expect(sleepingOf(world)).toMatchObject({ status: 'False', reason: 'Awake' });
    const id = await fallAsleep(world);
    expect([...servers.asleep]).toEqual([id]);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'idle' }, admission: { kind: 'park' } });
    expect(explain(world)).toContain('The slot is idle, and its server sleeps; the next request wakes it [Sleeping]');
    await world.clock.advance(120_000);
    expect([ids(world), actionsOf(world).filter((text) => text.startsWith('stop'))]).toEqual([[id], []]);
    expect(told(world)).toContain(`Put "${id}" to sleep`);
  });

  test('is woken by a request, which the same server answers', async () => {
    const servers = calm();
    const world = begin(servers);
    const id = await fallAsleep(world);
    const request = world.life().traffic.ask(PRIMARY, 100);
    expect(await world.clock.until(() => request.answers.length > 0, 5000)).toBe(true);
    expect([request.answers, ids(world)]).toEqual([['served'], [id]]);
    expect(sleepingOf(world)?.status).toBe('False');
    expect(await world.clock.until(() => sleepingOf(world)?.status === 'True', 30_000)).toBe(true);
  });

  test('parks a request that comes while the server falls asleep', async () => {
    const servers = calm();
    const world = begin(servers);
    servers.enter = async () => {
      await new Promise<void>((resolve) => void world.clock.at(world.clock.now() + 5000, resolve));
      return undefined;
    };
    await world.reach('primary', 'ready');
    await world.clock.until(() => actionsOf(world).some((text) => text.startsWith('put')), 30_000);
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(1000);
    expect([request.hold, request.answers]).toEqual([undefined, []]);
    expect(await world.clock.until(() => request.answers.length > 0, 10_000)).toBe(true);
    expect([request.answers, ids(world).length]).toEqual([['served'], 1]);
  });

  test('is woken when its warm time begins', async () => {
    const servers = calm();
    // The clock of a world begins on Wednesday at 05:33:20 in Berlin.
    const warm = ['Mon-Fri 05:40-06:00'];
    const world = begin(
      servers,
      { env: { SVC_TIME_ZONE: 'Europe/Berlin' } },
      { lifecycle: { idleTimeout: '10s', startTimeout: '20s', warm } },
    );
    const id = await fallAsleep(world);
    await world.clock.advance(8 * 60_000);
    expect([sleepingOf(world)?.status, ids(world), world.slot('primary').admission.kind]).toEqual(['False', [id], 'open']);
    await world.clock.advance(25 * 60_000);
    expect([sleepingOf(world)?.status, ids(world)]).toEqual(['True', [id]]);
  });

  test('stays asleep when the controller starts again', async () => {
    const world = begin(calm());
    const id = await fallAsleep(world);
    world.crash();
    await world.clock.advance(60_000);
    expect([sleepingOf(world)?.status, world.slot('primary').status.state, ids(world)]).toEqual(['True', 'idle', [id]]);
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(5000);
    expect([request.answers, ids(world)]).toEqual([['served'], [id]]);
  });

  test('is stopped when it is disabled, and replaced when an edit asks for another server', async () => {
    const world = begin(calm());
    const id = await fallAsleep(world);
    world.edit('primary', { ...IDLE, model: { default: 'b.gguf' } });
    await world.clock.advance(5000);
    expect(ids(world)).not.toContain(id);
    expect(world.slot('primary').admission.kind).toBe('open');
    await fallAsleep(world);
    world.edit('primary', { ...IDLE, enabled: false });
    await world.clock.advance(5000);
    expect(ids(world)).toEqual([]);
  });

  test('in a cluster is stopped as one that cannot sleep', async () => {
    const world = begin(calm(), { replicas: 1 });
    await world.reach('primary', 'ready', 120_000);
    await world.reach('primary', 'offline', 120_000);
    expect(actionsOf(world).some((text) => text.startsWith('put'))).toBe(false);
  });
});

describe('a server that does not do as it is told', () => {
  test('is stopped when it refuses to sleep, with the reason, and started by the next request', async () => {
    const servers = calm();
    servers.enter = async () => '"POST /sleep" was answered with status 500';
    const world = begin(servers);
    await world.reach('primary', 'ready');
    await world.reach('primary', 'offline');
    expect(told(world)).toContain('The server could not be put to sleep: "POST /sleep" was answered with status 500');
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(5000);
    expect(request.answers).toEqual(['served']);
  });

  test('is stopped and started when it cannot be woken, with back-off, and explains it', async () => {
    const servers = calm();
    const world = begin(servers);
    const id = await fallAsleep(world);
    servers.leave = async () => '"POST /wake_up" got no answer: No answer within 20000 ms';
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(500);
    expect(explain(world)).toContain('The server could not be woken: "POST /wake_up" got no answer');
    expect(await world.clock.until(() => request.answers.length > 0, 10_000)).toBe(true);
    expect(request.answers).toEqual(['served']);
    expect(ids(world)).toHaveLength(1);
    expect(ids(world)).not.toContain(id);
    const stopped = actionsOf(world).filter((text) => text === `stop "${id}"`);
    expect(stopped).toHaveLength(1);
  });

  test('that wakes by itself is put to sleep again, later each time', async () => {
    const servers = calm();
    const world = begin(servers);
    const id = await fallAsleep(world);
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      servers.asleep.delete(id);
      await world.clock.until(() => sleepingOf(world)?.status === 'False', 30_000);
      const awakeAt = world.clock.now();
      await world.clock.until(() => sleepingOf(world)?.status === 'True', 60_000);
      times.push(world.clock.now() - awakeAt);
    }
    expect(ids(world)).toEqual([id]);
    expect(times.at(-1)).toBeGreaterThan((times[0] ?? 0) + 3000);
  });

  test('that dies in its sleep is started by the next request', async () => {
    const world = begin(calm());
    await fallAsleep(world);
    for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
    await world.clock.advance(5000);
    const request = world.life().traffic.ask(PRIMARY, 100);
    await world.clock.advance(10_000);
    expect(request.answers).toEqual(['served']);
  });
});

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
