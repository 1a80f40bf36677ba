import { describe, expect, test } from '@jest/globals';
import type { ObservedWorkload } from '../../src/reconciler/ports.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { expectRest } from '../support/live-cluster/expect-rest.ts';
import { createWorld, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const PRIMARY = slotName('primary');
const SLOW = { podMs: () => [2000, 500] as const };

async function serving(options: WorldOptions = {}, document: Partial<SlotDocument> = {}): Promise<World> {
  const world = createWorld({ replicas: 1, ...options });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { model: { default: 'a.gguf' }, ...document });
  await world.reach('primary', 'ready');
  return world;
}

const ids = (world: World): readonly string[] => world.runtime.list().map(({ id }) => id);
function only(world: World): ObservedWorkload {
  const [workload] = world.runtime.list();
  if (workload === undefined) throw new Error('There is no workload');
  return workload;
}
const condition = (world: World, type: string) => world.slot('primary').status.conditions.find((each) => each.type === type);
const states = (world: World): readonly (string | undefined)[] =>
  world
    .life()
    .reports.flatMap(({ entries }) => entries)
    .filter(({ kind }) => kind === 'state')
    .map(({ to }) => to);

describe('a slot with pods', () => {
  test('pulls, starts, warms up and serves on the addresses of its pods, and takes no host port', async () => {
    const world = await serving({ behaviour: SLOW }, { replicas: 3 });
    expect(states(world)).toEqual(['starting', 'pulling', 'warming', 'ready']);
    await world.clock.advance(5000);
    const { targets, status } = world.slot('primary');
    expect(new Set(targets.map(({ endpoint }) => endpoint.host)).size).toBe(3);
    expect(new Set(targets.map(({ endpoint }) => endpoint.port))).toEqual(new Set([8080]));
    expect(status.replicas).toEqual({ present: 3, ready: 3 });
    await expectRest(world);
  });

  test('is scaled up and down without a restart, and its requests go on', async () => {
    const world = await serving();
    const before = ids(world);
    for (const replicas of [4, 2]) {
      const request = world.life().traffic.ask(PRIMARY, 3000);
      await world.clock.advance(10);
      world.edit('primary', { model: { default: 'a.gguf' }, replicas });
      await world.clock.until(() => world.slot('primary').targets.length === replicas, 10_000);
      await world.clock.advance(5000);
      expect([ids(world), world.slot('primary').targets.length, request.answers]).toEqual([before, replicas, ['served']]);
      await expectRest(world);
    }
    expect(states(world).filter((state) => state === 'warming')).toHaveLength(1);
    expect(world.slot('primary').status.restarts).toBe(0);
  });

  test('with no replicas is not wanted, and says what to do', async () => {
    const world = await serving();
    world.edit('primary', { model: { default: 'a.gguf' }, replicas: 0 });
    await world.reach('primary', 'offline');
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'NoReplicas' });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    expect(world.slot('primary').admission).toMatchObject({
      code: 'slot.disabled',
      message: expect.stringContaining('Slot "primary" has no replicas'),
    });
    await expectRest(world);
    world.edit('primary', { model: { default: 'a.gguf' }, replicas: 1 });
    await world.reach('primary', 'ready');
  });

  test('parks requests while none of its pods is ready, and is neither faulty nor started anew', async () => {
    const world = await serving({ behaviour: { podMs: () => [1000, 500] } });
    const before = ids(world);
    world.cluster?.evict(only(world).id);
    await world.clock.until(() => world.slot('primary').targets.length === 0, 100);
    const request = world.life().traffic.ask(PRIMARY, 5);
    expect(world.slot('primary').admission.kind).toBe('park');
    await world.clock.until(() => request.answers.length > 0, 10_000);
    expect([request.answers, ids(world)]).toEqual([['served'], before]);
    await expectRest(world);
  });

  test('sends no request to a new pod before it has shown that it is ready, and checks each pod once', async () => {
    const checks: string[] = [];
    const pods: { first?: string | undefined; broken?: string } = {};
    const nonsense = (_model: string, { host }: { readonly host: string }): boolean => {
      checks.push(host);
      if (pods.first !== undefined && host !== pods.first) pods.broken ??= host;
      return host === pods.broken;
    };
    const world = await serving({ nonsense });
    pods.first = world.slot('primary').targets[0]?.endpoint.host;
    const sent = new Set<string>();
    world.edit('primary', { model: { default: 'a.gguf' }, replicas: 3 });
    for (let step = 0; step < 6000; step += 1) {
      await world.clock.advance(10);
      for (const { endpoint } of world.slot('primary').targets) sent.add(endpoint.host);
    }
    expect(only(world).endpoints).toHaveLength(3);
    expect(pods.broken).toBeDefined();
    expect(sent.size).toBe(2);
    expect(sent).not.toContain(pods.broken);
    expect(checks.filter((host) => host === pods.first)).toHaveLength(1);
    const counts = [...sent].map((host) => checks.filter((each) => each === host).length);
    await world.clock.advance(200_000);
    expect([...sent].map((host) => checks.filter((each) => each === host).length)).toEqual(counts);
  });

  test('leaves out a pod that does not answer its probe while another one does', async () => {
    let failingEndpoints: string | undefined;
    const world = await serving({ answers: (_port, { host }) => host !== failingEndpoints }, { replicas: 2 });
    failingEndpoints = world.slot('primary').targets[0]?.endpoint.host;
    await world.clock.until(() => world.slot('primary').targets.length === 1, 70_000);
    expect(world.slot('primary').targets[0]?.endpoint.host).not.toBe(failingEndpoints);
    expect(world.slot('primary').admission.kind).toBe('open');
    failingEndpoints = undefined;
    await world.clock.until(() => world.slot('primary').targets.length === 2, 70_000);
    expect(world.slot('primary').targets).toHaveLength(2);
    await expectRest(world);
  });
});

describe('what was altered in the cluster', () => {
  const alter = (world: World): void => world.runtime.alter(only(world).id, { env: { SLOT: 'other' } });

  test('is put right in place while it serves', async () => {
    const world = await serving({ behaviour: { applyMs: () => [300, 0] } });
    const before = ids(world);
    const seen = new Set<string>();
    alter(world);
    for (let step = 0; step < 80; step += 1) {
      await world.clock.advance(10);
      seen.add(`${world.slot('primary').status.state} ${world.slot('primary').admission.kind}`);
    }
    expect([seen, ids(world)]).toEqual([new Set(['ready open']), before]);
    expect(only(world).container.env).toEqual({ SLOT: 'primary' });
    const told = world.life().reports.flatMap(({ entries }) => entries);
    expect(told.filter(({ kind }) => kind === 'drift')).toMatchObject([{ message: expect.stringContaining('env with other values') }]);
    expect(told).toContainEqual(expect.objectContaining({ message: expect.stringContaining('Repairing "svc-slot-primary" in place') }));
    expect(condition(world, 'DriftDetected')).toMatchObject({ status: 'False' });
    await expectRest(world);
  });

  test('is scaled back', async () => {
    const world = await serving();
    world.cluster?.scale(only(world).id, 0);
    await world.clock.until(() => world.slot('primary').targets.length === 0, 100);
    await world.reach('primary', 'ready');
    expect(only(world).replicas).toEqual({ present: 1, ready: 1 });
    await expectRest(world);
  });

  test('is put right later and later where it is altered again and again, while it serves', async () => {
    const world = await serving();
    for (let round = 0; round < 10; round += 1) {
      alter(world);
      await world.clock.advance(5000);
    }
    expect(world.changes().filter((change) => change.startsWith('repair'))).toHaveLength(6);
    expect(condition(world, 'DriftDetected')).toMatchObject({ status: 'True', message: expect.stringContaining('repaired 6 times') });
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    expect(world.slot('primary').admission.kind).toBe('open');
    await world.clock.advance(3_600_000);
    expect(condition(world, 'DriftDetected')).toMatchObject({ status: 'False' });
    expect(world.changes().filter((change) => change.startsWith('repair'))).toHaveLength(7);
    await expectRest(world);
  });

  test('is only told of where the slot says so', async () => {
    const world = await serving({}, { lifecycle: { drift: 'warn' } });
    alter(world);
    await world.clock.advance(10_000);
    expect(only(world).container.env).toEqual({ SLOT: 'other' });
    expect(condition(world, 'DriftDetected')).toMatchObject({ status: 'True' });
    await expectRest(world);
  });

  test('is not put right when putting right fails, but less and less often tried', async () => {
    let refused = false;
    const failure = { kind: 'retry', reason: 'Forbidden', message: 'Let the controller write Deployments' } as const;
    const world = await serving({ behaviour: { applyFailure: () => (refused ? failure : undefined) } });
    refused = true;
    alter(world);
    await world.clock.advance(60_000);
    expect(world.changes().filter((change) => change.startsWith('repair')).length).toBeLessThanOrEqual(7);
    expect(world.slot('primary').status.state).toBe('ready');
    refused = false;
    await world.clock.advance(60_000);
    expect(only(world).container.env).toEqual({ SLOT: 'primary' });
    await expectRest(world);
  });

  test('comes back when it was deleted', async () => {
    const world = await serving();
    world.runtime.vanish(only(world).id);
    await world.clock.until(() => world.slot('primary').status.state !== 'ready', 1000);
    await world.reach('primary', 'ready');
    await expectRest(world);
  });
});

describe('an edit of a timeout', () => {
  test.each(['startTimeout', 'drainTimeout'] as const)('of "%s" reaches every pod: by a swap that loses no request', async (key) => {
    const world = await serving({}, { replicas: 2 });
    const before = only(world).id;
    const request = world.life().traffic.ask(PRIMARY, 300);
    world.edit('primary', { model: { default: 'a.gguf' }, replicas: 2, lifecycle: { [key]: '7s' } });
    await world.clock.advance(10);
    expect(condition(world, 'UpToDate')).toMatchObject({ status: 'False' });
    await world.clock.until(() => condition(world, 'UpToDate')?.status === 'True', 60_000);
    expect(world.cluster?.podsOf(only(world).id).cluster).toMatchObject({ [`${key}Ms`]: 7000, replicas: 2 });
    expect(only(world).id).not.toBe(before);
    expect(request.answers).toEqual(['served']);
    await expectRest(world);
  });
});

describe('an edit that needs no new workload', () => {
  test('is applied in place, and is no failure', async () => {
    const world = await serving();
    const before = ids(world);
    world.edit('primary', { model: { default: 'a.gguf' }, replicas: 2 });
    await world.clock.advance(1000);
    expect(world.changes().filter((change) => change.startsWith('update "svc-slot-primary" in place'))).toHaveLength(1);
    expect(ids(world)).toEqual(before);
    expect(world.slot('primary').explain(world.clock.now())).not.toContain('failed');
    await expectRest(world);
  });

  test('is applied less and less often while it does not last', async () => {
    const world = await serving({ traits: { inPlace: { findAltered: () => [], isOutdated: () => true } } });
    await world.clock.advance(60_000);
    const updates = world.changes().filter((change) => change.startsWith('update "svc-slot-primary" in place')).length;
    // After pauses of 1, 2, 4, 8, 16 and 32 s at the most.
    expect(updates).toBeGreaterThan(3);
    expect(updates).toBeLessThanOrEqual(7);
    expect(world.slot('primary').status.state).toBe('ready');
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' });
    await world.clock.advance(1_800_000);
    const message = expect.stringMatching(/^An edit was applied 1\d times, and something undoes it each time/);
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'WorkloadAltered', message });
    expect(world.slot('primary').admission.kind).toBe('open');
  });
});
