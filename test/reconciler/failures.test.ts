import { describe, expect, test } from '@jest/globals';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

async function serving(options: WorldOptions = {}, document: Readonly<Record<string, unknown>> = {}): Promise<World> {
  const world = createWorld(options);
  world.setModel('a.gguf', 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, ...document });
  await world.reach('primary', 'ready');
  return world;
}

function crash(world: World): void {
  for (const { id } of world.runtime.list()) world.runtime.exit(id, { code: 139 });
}

const ready = (world: World): boolean => world.slot('primary').status.state === 'ready';
const condition = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);
const readyStatus = (world: World): string | undefined => condition(world, 'Ready')?.status;

describe('a server that ends by itself', () => {
  test('is started again a second later, and its last words are kept', async () => {
    const world = await serving();
    crash(world);
    await world.reach('primary', 'offline', 1000);
    expect(world.slot('primary').admission.kind).toBe('park');
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'Crashed' });
    await world.clock.advance(50);
    expect(world.slot('primary').explain(world.clock.now())).toContain('died with code 139');
    const before = world.clock.now();
    await world.reach('primary', 'ready');
    expect(world.clock.now() - before).toBeLessThan(1500);
    await expectRest(world);
  });

  test('waits twice as long each time, and stalls after five times in ten minutes, until an edit', async () => {
    const world = await serving();
    const pauses: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      crash(world);
      const at = world.clock.now();
      await world.clock.advance(100);
      await world.reach('primary', 'ready');
      pauses.push(Math.round((world.clock.now() - at) / 1000));
    }
    expect(pauses).toEqual([1, 2, 4, 8]);
    crash(world);
    await world.clock.advance(3_600_000);
    expect(world.slot('primary')).toMatchObject({ status: { state: 'offline' }, admission: { kind: 'refuse', code: 'slot.stalled' } });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CrashLoop' });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'False' });
    await expectRest(world);
    world.edit('primary', { model: { default: 'a.gguf' }, restartedAt: '2026-01-01T00:00:00Z' });
    await world.reach('primary', 'ready', 1000);
    await expectRest(world);
  });

  test('gets another port if it was never ready on this one', async () => {
    const world = createWorld({ readyMs: () => 60_000 });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' } });
    const port = (): number => world.runtime.list()[0]?.container.port?.host ?? 0;
    await world.reach('primary', 'starting', 5000);
    const first = port();
    crash(world);
    await world.reach('primary', 'offline', 1000);
    await world.reach('primary', 'starting', 5000);
    expect(port()).toBe(first + 1);
  });

  test('is forgiven after ten minutes that went well', async () => {
    const world = await serving();
    for (let round = 0; round < 12; round += 1) {
      crash(world);
      await world.clock.advance(100);
      await world.reach('primary', 'ready');
      await world.clock.advance(615_000);
    }
    const at = world.clock.now();
    crash(world);
    await world.clock.advance(100);
    await world.reach('primary', 'ready');
    expect(world.clock.now() - at).toBeLessThan(1500);
  });
});

describe('a workload', () => {
  test('that vanishes is started again', async () => {
    const world = await serving();
    for (const { id } of world.runtime.list()) world.runtime.vanish(id);
    await world.clock.until(() => !ready(world), 1000);
    await world.reach('primary', 'ready');
    expect(world.life().reports.flatMap(({ entries }) => entries)).toContainEqual(
      expect.objectContaining({ kind: 'failure', message: 'The workload disappeared without being stopped' }),
    );
    await expectRest(world);
  });

  test('that answers no more is replaced after three probes', async () => {
    let failingEndpoints = false;
    const world = await serving({ answers: () => !failingEndpoints });
    const before = world.runtime.list()[0]?.id;
    failingEndpoints = true;
    expect(await world.clock.until(() => world.slot('primary').status.state === 'unloading', 30_000)).toBe(true);
    failingEndpoints = false;
    await world.reach('primary', 'ready');
    expect(world.runtime.list()[0]?.id).not.toBe(before);
    await expectRest(world);
  });

  test('that answers its probes with errors is replaced after three probes', async () => {
    let errs = false;
    const world = await serving({ errs: () => errs });
    const before = world.runtime.list()[0]?.id;
    errs = true;
    expect(await world.clock.until(() => world.slot('primary').status.state === 'unloading', 30_000)).toBe(true);
    errs = false;
    await world.reach('primary', 'ready');
    expect(world.runtime.list()[0]?.id).not.toBe(before);
    await expectRest(world);
  });

  test.each(['idle', 'busy'])('that is frozen while it is %s is replaced within 30 s, and its requests are sent again', async (how) => {
    const world = await serving();
    const [before] = world.runtime.list();
    if (before === undefined) throw new Error('There is no workload');
    const ask = () => world.life().traffic.ask(slotName('primary'), 5000);
    const requests = how === 'busy' ? [ask()] : [];
    await world.clock.advance(how === 'busy' ? 1000 : 9000);
    const at = world.clock.now();
    world.freeze(before.id);
    expect(await world.clock.until(() => readyStatus(world) === 'Unknown', 20_000)).toBe(true);
    expect(condition(world, 'Ready')).toMatchObject({ reason: 'ProbeUnanswered' });
    requests.push(ask());
    expect(await world.clock.until(() => world.runtime.list().every(({ id }) => id !== before.id), 60_000)).toBe(true);
    expect(world.clock.now() - at).toBeLessThan(30_000);
    world.life().traffic.died(before.id);
    await world.clock.until(() => requests.every(({ answers }) => answers.length > 0), 60_000);
    expect(requests.flatMap(({ answers }) => answers)).toEqual(requests.map(() => 'served'));
    await expectRest(world);
  });

  test('that is frozen for a moment stays', async () => {
    const world = await serving();
    const [before] = world.runtime.list();
    if (before === undefined) throw new Error('There is no workload');
    for (let round = 0; round < 5; round += 1) {
      world.freeze(before.id);
      await world.clock.until(() => readyStatus(world) === 'Unknown', 20_000);
      world.thaw(before.id);
      await world.clock.until(() => readyStatus(world) === 'True', 20_000);
    }
    expect(world.runtime.list().map(({ id }) => id)).toEqual([before.id]);
    expect(world.changes()).toHaveLength(1);
  });

  test('that is busy for a minute stays, as it answers that it is alive', async () => {
    const world = await serving();
    const before = world.runtime.list().map(({ id }) => id);
    const request = world.life().traffic.ask(slotName('primary'), 100_000);
    await world.clock.advance(99_000);
    expect(readyStatus(world)).toBe('True');
    await world.clock.advance(2000);
    expect([request.answers, world.runtime.list().map(({ id }) => id)]).toEqual([['served'], before]);
  });

  test('that cannot be started backs off and says why', async () => {
    let broken = true;
    const failure = { kind: 'retry', reason: 'StartFailed', message: 'The device is busy' } as const;
    const world = createWorld({ behaviour: { applyFailure: () => (broken ? failure : undefined) } });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.clock.advance(20_000);
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'StartFailed', message: 'The device is busy' });
    expect(world.changes().filter((change) => change.startsWith('start')).length).toBeLessThanOrEqual(6);
    broken = false;
    await world.reach('primary', 'ready');
    await expectRest(world);
  });

  test('whose stop fails is stopped again, less and less often', async () => {
    let broken = true;
    const failure = { kind: 'retry', reason: 'StopFailed', message: 'It does not end' } as const;
    const world = await serving({ behaviour: { stopFailure: () => (broken ? failure : undefined) } });
    world.edit('primary', { enabled: false, model: { default: 'a.gguf' } });
    await world.clock.advance(60_000);
    const stops = world.changes().filter((change) => change.startsWith('stop')).length;
    expect(stops).toBeGreaterThan(2);
    expect(stops).toBeLessThan(10);
    broken = false;
    await world.reach('primary', 'offline', 300_000);
    await expectRest(world);
  });
});

describe('demand', () => {
  const onDemand = { load: 'on-demand', lifecycle: { idleTimeout: '30s' } } as const;

  async function resting(): Promise<World> {
    const world = createWorld();
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' }, load: 'on-demand', lifecycle: { idleTimeout: '30s' } });
    await world.clock.advance(1000);
    return world;
  }

  test('loads a slot, which unloads when idle, and loads again', async () => {
    const world = await resting();
    expect(world.slot('primary')).toMatchObject({ status: { state: 'offline' }, admission: { kind: 'park' } });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'False' });
    for (let round = 0; round < 2; round += 1) {
      const request = world.life().traffic.ask(slotName('primary'), 100);
      await world.clock.until(() => request.answers.length > 0, 5000);
      expect(request.answers).toEqual(['served']);
      await world.clock.advance(25_000);
      expect(world.slot('primary').status.state).toBe('idle');
      await world.reach('primary', 'offline', 10_000);
      await expectRest(world);
    }
  });

  test('goes on loading when the one who asked has left', async () => {
    const world = await resting();
    const request = world.life().traffic.ask(slotName('primary'), 100, 5);
    await world.reach('primary', 'ready', 5000);
    expect(request.answers).toEqual(['left']);
  });

  test('ends a load ten seconds after the last request that waited for it has left, until the next one asks', async () => {
    const world = createWorld({ readyMs: () => 60_000 });
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' }, ...onDemand, lifecycle: { idleTimeout: '600s' } });
    await world.clock.advance(1000);
    const { traffic } = world.life();
    const requests = [traffic.ask(slotName('primary'), 100, 5000), traffic.ask(slotName('primary'), 100, 20_000)];
    await world.clock.advance(29_000);
    expect(requests.map(({ answers }) => answers)).toEqual([['left'], ['left']]);
    expect(world.slot('primary').status.state).toBe('warming');
    await world.reach('primary', 'offline', 2000);
    expect(world.runtime.list()).toEqual([]);
    await expectRest(world);
    await world.clock.advance(120_000);
    expect(world.slot('primary').status.state).toBe('offline');
    const again = traffic.ask(slotName('primary'), 100);
    await world.clock.until(() => again.answers.length > 0, 120_000);
    expect(again.answers).toEqual(['served']);
  });

  test('keeps what a controller before it left running, for its idle time', async () => {
    const world = await serving({}, onDemand).catch(async () => await resting());
    world.life().traffic.ask(slotName('primary'), 10);
    await world.clock.advance(1000);
    await world.restart();
    await world.clock.advance(20_000);
    expect(world.runtime.list()).toHaveLength(1);
    await world.reach('primary', 'offline', 20_000);
  });
});

describe('memory', () => {
  const two = async (priorities: readonly [number, number], load: 'always' | 'on-demand' = 'always'): Promise<World> => {
    const world = createWorld({ env: { SVC_MEMORY_BUDGET: '1500' } });
    world.setModel('a.gguf', 'present', 1000);
    world.edit('primary', { model: { default: 'a.gguf' }, priority: priorities[0], load });
    if (load === 'on-demand') world.life().traffic.ask(slotName('primary'), 10);
    await world.clock.advance(1000);
    world.edit('embed', { model: { default: 'a.gguf' }, priority: priorities[1], load });
    await world.clock.advance(1000);
    return world;
  };

  test('goes to who has it, and the other one is refused with the numbers', async () => {
    const world = await two([0, 0]);
    expect(world.slot('primary').status.state).toBe('ready');
    expect(world.slot('embed').admission).toMatchObject({ kind: 'refuse', code: 'slot.insufficient_memory' });
    expect(world.slot('embed').explain(world.clock.now())).toContain('needs 1000 B; 1.5 KiB budget, 1000 B reserved for "primary"');
    await expectRest(world);
  });

  test('goes to who has the higher priority, once the other one has gone', async () => {
    const world = await two([0, 5]);
    await world.reach('embed', 'ready');
    expect(world.slot('primary')).toMatchObject({ status: { state: 'offline' }, admission: { code: 'slot.insufficient_memory' } });
    expect(world.runtime.list()).toHaveLength(1);
    await expectRest(world);
  });

  test('goes back and forth between slots on demand, to who is asked', async () => {
    const world = await two([0, 0], 'on-demand');
    expect(world.slot('primary').status.state).toBe('idle');
    for (const name of ['embed', 'primary', 'embed']) {
      const request = world.life().traffic.ask(slotName(name), 50);
      await world.clock.until(() => request.answers.length > 0, 10_000);
      expect([name, request.answers]).toEqual([name, ['served']]);
      await world.clock.advance(500);
    }
    await expectRest(world);
  });
});
