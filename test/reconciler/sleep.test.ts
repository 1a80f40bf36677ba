/** Idle servers that sleep instead of being stopped, through the whole loop, with servers that do as they are told, or not. */
import { describe, expect, test } from '@jest/globals';
import { begin, calm, ids, sleepingOf, actionsOf, explain, told, fallAsleep, PRIMARY, IDLE } from './sleeping-world.ts';

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

  test('counts as asleep where nobody waited for its answer, because it was to be stopped, and the stop failed', async () => {
    let broken = false;
    const stopFailure = () => (broken ? ({ kind: 'retry', reason: 'StopFailed', message: 'No' } as const) : undefined);
    const servers = calm();
    const world = begin(servers, { behaviour: { stopFailure } });
    servers.enter = async () => {
      await new Promise<void>((resolve) => void world.clock.at(world.clock.now() + 5000, resolve));
      return undefined;
    };
    await world.reach('primary', 'ready');
    const [id = ''] = ids(world);
    await world.clock.until(() => actionsOf(world).some((text) => text.startsWith('put')), 30_000);
    broken = true;
    world.edit('primary', { ...IDLE, enabled: false });
    await world.clock.advance(200);
    world.edit('primary', IDLE);
    await world.clock.advance(200);
    const request = world.life().traffic.ask(PRIMARY, 1000);
    await world.clock.until(() => request.hold !== undefined || request.answers.length > 0, 20_000);
    expect([request.hold, servers.asleep.has(id)]).toEqual([id, false]);
    expect(actionsOf(world).some((text) => text.startsWith('wake'))).toBe(true);
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

  test('is woken by an edit that takes its idle time away', async () => {
    const servers = calm();
    const world = begin(servers);
    const id = await fallAsleep(world);
    world.edit('primary', { ...IDLE, lifecycle: { ...IDLE.lifecycle, idleTimeout: 'never' } });
    expect(await world.clock.until(() => sleepingOf(world)?.status === 'False', 30_000)).toBe(true);
    await world.clock.advance(120_000);
    expect([ids(world), sleepingOf(world)?.status, [...servers.asleep]]).toEqual([[id], 'False', []]);
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
