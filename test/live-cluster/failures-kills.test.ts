/**
 * Two controllers, of which the leader is killed during every kind of step in a slot's life, and started again at once. Requests go to the other one.
 * SVC_TEST_SEED repeats a run.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { demoSlot } from '../support/live-cluster/cluster.ts';
import { watchDeployments, type DeploymentHistory } from '../support/live-cluster/deployment-history.ts';
import { logLeaders, type LeaderLog } from '../support/live-cluster/leader-log.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { createRandom } from '../support/simulation/seeded-random.ts';
import { pause } from '../support/service.ts';
import { findFaults, listSlotObjects, untilAtRest, type SlotObjects } from '../support/live-cluster/slot-objects.ts';
import { startStreamLoop, type StreamLoop } from '../support/live-cluster/stream-loop.ts';

const SEED = Number(process.env['SVC_TEST_SEED'] ?? Date.now() % 100_000);
const LEASE_S = 3;
/** From an edit to its last effect: pods start within some seconds. */
const MIDWAY_MS = 4000;

interface Step {
  readonly name: string;
  readonly edit: () => Promise<unknown>;
  /** Only pods of these slots may change. */
  readonly touches: readonly string[];
  /** Number of pods that each slot wants after the step. */
  readonly wanted: Readonly<Record<string, number>>;
  /** How many pods of the touched slots must stay. */
  readonly stay?: Readonly<Record<string, number>>;
  readonly kills: number;
}

describeWithCluster(`Controllers killed at any step (SVC_TEST_SEED=${SEED})`, () => {
  const random = createRandom(SEED);
  let space: ClusterNamespace;
  let controllers: Readonly<Record<'a' | 'b', ClusterController>>;
  let log: LeaderLog;
  let history: DeploymentHistory;
  let loop: StreamLoop | undefined;
  /** The controller that requests go to. */
  let front: ClusterController;
  let kills = 0;
  const underWay = new Map<ClusterController, number>();

  beforeAll(async () => {
    space = await createClusterNamespace('kills', () => `${history.describe()}\n${controllers.a.output()}\n${controllers.b.output()}`);
    const environment = { SVC_LEASE_DURATION: `${LEASE_S}s` };
    const make = async (identity: string) => createClusterController({ namespace: space.name, identity, environment });
    controllers = { a: await make('gateway-a'), b: await make('gateway-b') };
    await Promise.all([controllers.a.start(), controllers.b.start()]);
    log = logLeaders(controllers);
    history = await watchDeployments(space.name);
    while (log.leaders.length === 0) await pause(20);
    front = controllers.a;
  }, 60_000);
  afterAll(async () => {
    await loop?.end();
    await log?.stop();
    await history?.stop();
    for (const each of Object.values(controllers ?? {})) await each.dispose();
    await space?.dispose();
  }, 60_000);

  /** Like a load balancer: sends to the controller that is not about to be killed. */
  const chat = async (body: object = {}, signal?: AbortSignal): Promise<Response> => {
    const to = front;
    underWay.set(to, (underWay.get(to) ?? 0) + 1);
    try {
      const answer = await to.chat({ model: 'primary', ...body }, signal);
      return new Response(await answer.text(), { status: answer.status });
    } finally {
      underWay.set(to, (underWay.get(to) ?? 0) - 1);
    }
  };

  /** Returns the leader, once it has none of our requests left. */
  const victim = async (): Promise<ClusterController> => {
    const leads = async (each: ClusterController) =>
      each.counts().then(
        (counts) => counts.leads,
        () => false,
      );
    for (;;) {
      const { a, b } = controllers;
      const [found, other] = (await leads(a)) ? [a, b] : (await leads(b)) ? [b, a] : [undefined, a];
      if (found === undefined) {
        await pause(20);
        continue;
      }
      front = other;
      while ((underWay.get(found) ?? 0) > 0) await pause(2);
      return found;
    }
  };

  const killed = async (afterMs: number): Promise<void> => {
    await pause(afterMs);
    const found = await victim();
    await found.kill('SIGKILL');
    kills += 1;
    await found.start();
  };

  const models = { primary: 'demo-fox', second: 'demo-owl', third: 'demo-clock' };
  const slots = Object.keys(models);
  const patch = (slot: string, spec: object) => async () => space.patch(slot, spec);
  const all = { primary: 1, second: 1, third: 1 };
  const steps: readonly Step[] = [
    {
      name: 'three slots are applied',
      edit: async () =>
        space.apply(
          Object.entries(models)
            .map(([name, model]) => demoSlot(name, model))
            .join(''),
        ),
      touches: slots,
      wanted: all,
      kills: 2,
    },
    { name: 'a blue-green swap', edit: patch('primary', { model: { default: 'demo-owl' } }), touches: ['primary'], wanted: all, kills: 2 },
    {
      name: 'a drain swap',
      edit: patch('second', { model: { default: 'demo-fox' }, lifecycle: { swap: 'drain' } }),
      touches: ['second'],
      wanted: all,
      kills: 2,
    },
    {
      name: 'more replicas',
      edit: patch('second', { replicas: 3 }),
      touches: ['second'],
      wanted: { ...all, second: 3 },
      stay: { second: 1 },
      kills: 1,
    },
    {
      name: 'fewer replicas',
      edit: patch('second', { replicas: 2 }),
      touches: ['second'],
      wanted: { ...all, second: 2 },
      stay: { second: 2 },
      kills: 1,
    },
    {
      name: 'a slot that is disabled',
      edit: patch('third', { enabled: false }),
      touches: ['third'],
      wanted: { primary: 1, second: 2, third: 0 },
      kills: 1,
    },
    {
      name: 'a slot that is enabled while another one is swapped back',
      edit: async () => Promise.all([space.patch('third', { enabled: true }), space.patch('primary', { model: { default: 'demo-fox' } })]),
      touches: ['primary', 'third'],
      wanted: { primary: 1, second: 2, third: 1 },
      kills: 2,
    },
    {
      name: 'a slot that is deleted',
      edit: async () => space.kubectl(['delete', 'slot', 'third', '--wait=false']),
      touches: ['third'],
      wanted: { primary: 1, second: 2 },
      kills: 1,
    },
  ];

  test.each(steps)(
    '$name: comes to rest without duplicates or restarts',
    async ({ name, edit, touches, wanted, stay = {}, kills: times }) => {
      const before = await listSlotObjects(space.name);
      await victim();
      await edit();
      const delays = Array.from({ length: times }, () => random.int(0, MIDWAY_MS));
      for (const delay of delays) await killed(delay);
      const startedAt = performance.now();
      const after = await untilAtRest(space.name, new Map(Object.entries(wanted)));
      await space.untilReady(Object.keys(wanted).filter((slot) => wanted[slot] !== 0));
      const restMs = Math.round(performance.now() - startedAt);
      process.stdout.write(`${name}: killed ${delays.map((delay) => `${delay} ms`).join(', ')} after; at rest after ${restMs} ms more\n`);
      expect(restarted(before, after, touches)).toEqual([]);
      for (const [slot, least] of Object.entries(stay)) expect(countKept(before, after, slot)).toBeGreaterThanOrEqual(least);
      loop ??= startStreamLoop({ chat }, 2);
    },
    120_000,
  );

  test('no request failed, there was one leader at a time, and only the leader wrote', async () => {
    const score = await loop?.end();
    expect(kills).toBe(12);
    expect(score?.failures).toEqual([]);
    expect(score?.requests).toBeGreaterThan(100);
    expect([...(score?.texts.keys() ?? [])].toSorted()).toEqual([DEMO_SENTENCES['demo-fox'], DEMO_SENTENCES['demo-owl']].toSorted());
    process.stdout.write(`${kills} kills, ${score?.requests} requests, ${history.created()} Deployments made\n`);
    expect(history.duplicates).toEqual([]);
    // Three slots, three swaps, one slot switched on again.
    expect(`${history.created()}\n${history.describe()}`).toMatch(/^7\n/);
    // Each kill allows one more leader; two at the same time would be listed alternately.
    expect(log.leaders.length).toBeLessThanOrEqual(kills + 1);
    expect(log.trespasses).toEqual([]);
    expect(
      findFaults(
        await listSlotObjects(space.name),
        new Map([
          ['primary', 1],
          ['second', 2],
        ]),
      ),
    ).toEqual([]);
  }, 30_000);
});

/** Returns pods of untouched slots that were ready, and are gone or were restarted. */
function restarted(before: SlotObjects, after: SlotObjects, touches: readonly string[]): readonly string[] {
  const now = new Map(after.pods.map((pod) => [pod.uid, pod]));
  return before.pods
    .filter(({ slot, ready }) => ready && !touches.includes(slot))
    .filter(({ uid, restarts }) => now.get(uid)?.restarts !== restarts)
    .map(({ slot, uid }) => `${slot} ${uid}`);
}

const countKept = (before: SlotObjects, after: SlotObjects, slot: string): number =>
  after.pods.filter((pod) => pod.slot === slot && before.pods.some(({ uid, restarts }) => uid === pod.uid && restarts === pod.restarts))
    .length;
