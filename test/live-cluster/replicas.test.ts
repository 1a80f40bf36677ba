/** Two gateways behind one Service: both serve, one reconciles, and either may be stopped at any time. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { conditionOf, demoSlot, install, render, type Installation } from '../support/live-cluster/cluster.ts';
import {
  eventually,
  gatewaysOf,
  metric,
  metricOfAll,
  slotPods,
  startClients,
  startStream,
  untilEnded,
  type Gateway,
} from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';

interface SlotBody {
  readonly name: string;
  readonly spec: { readonly priority?: number };
  readonly generation: number;
  readonly resource_version: string;
  readonly status: {
    readonly state: string;
    readonly restarts: number;
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }[];
  };
}

const SLOTS = [
  demoSlot('primary', 'demo-clock'),
  demoSlot('closed', 'demo-fox', '  enabled: false\n'),
  demoSlot('homeless', 'demo-fox', '  nodeSelector: { disk: none-has-it }\n'),
  demoSlot('nap', 'demo-fox', '  load: on-demand\n'),
].join('');
const CLIENTS = 4;
/** Takes about half a second for four requests at once on one core. */
const TOKENS = 150;

/** From the deletion of a gateway's pod until its process has exited, with only short requests in flight: the stop delay and kubelet's own delay. The grace period is 120 s. */
const ENDED_MS = 40_000;

describeWithCluster('Two gateways', () => {
  let svc: Installation;
  let pods: readonly string[] = [];
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-replicas', values: 'replicas: 2\n' });
    await svc.apply(SLOTS);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=120s']);
    pods = (await slotPods(svc, 'primary')).map(({ uid }) => uid);
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const gateways = async (): Promise<readonly Gateway[]> =>
    eventually(
      'there are two gateways, and one of them is the leader',
      async () => gatewaysOf(svc),
      (seen) => seen.length === 2 && seen[0]?.leads === true,
    );
  const both = async (): Promise<{ readonly leader: Gateway; readonly follower: Gateway }> => {
    const [leader, follower] = await gateways();
    if (leader === undefined || follower === undefined) throw new Error('There are not two gateways');
    return { leader, follower };
  };
  const call = async (gateway: Gateway, method: string, name: string, body?: object, ifMatch?: string): Promise<Response> =>
    fetch(`${gateway.url}/api/slots/${name}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json', ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) },
    });
  const slotAt = async (gateway: Gateway, name: string): Promise<SlotBody> => JSON.parse(await (await call(gateway, 'GET', name)).text());
  const shownBy = async ({ url }: Gateway): Promise<readonly object[]> => {
    const { slots }: { readonly slots: readonly SlotBody[] } = JSON.parse(await (await fetch(`${url}/api/slots`)).text());
    return slots.map(({ name, status: { state, restarts, conditions } }) => ({
      name,
      state,
      restarts,
      conditions: conditions.map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    }));
  };
  const expectOneLeader = async (): Promise<void> => {
    const sum = await eventually(
      'one of two is the leader',
      async () => metricOfAll(await gateways(), 'svc_leads'),
      (leads) => leads === 1,
    );
    expect(sum).toBe(1);
  };
  /** Runs `act` while clients send requests through the Service, and returns the failures of their requests. */
  const underLoad = async (act: () => Promise<unknown>): Promise<readonly string[]> => {
    const clients = startClients(svc.url, 'primary', CLIENTS, TOKENS);
    try {
      await pause(1000);
      await act();
      // Stopped gateways wait for their last requests.
      await pause(8000);
      const done = clients.done();
      await eventually(
        'requests are still answered',
        async () => clients.done(),
        (now) => now > done,
      );
    } catch (error) {
      await clients.end();
      throw error;
    }
    return clients.end();
  };
  const expectSamePods = async (): Promise<void> => {
    expect((await slotPods(svc, 'primary')).map(({ uid, restarts }) => ({ uid, restarts }))).toEqual(
      pods.map((uid) => ({ uid, restarts: 0 })),
    );
  };

  test('both serve, and one of them is the leader', async () => {
    const { leader, follower } = await both();
    const streams = [leader, follower].map(({ url }) => startStream(url, 'primary', TOKENS));
    expect(await Promise.all(streams.map(({ failure }) => failure))).toEqual([undefined, undefined]);
    expect(await metricOfAll([leader], 'svc_leads')).toBe(1);
    expect(await metricOfAll([follower], 'svc_leads')).toBe(0);
  }, 60_000);

  test('export their own requests to the API server and the age of their copies, the same replicas of slots, and what only the leader writes', async () => {
    const { leader, follower } = await both();
    for (const { url, leads } of [leader, follower]) {
      const who = leads ? 'the leader' : 'the follower';
      const answered = 'verb="watch",resource="pods"';
      expect(await metric(url, 'svc_kube_requests_total', `${answered},code="200"`)).toBeGreaterThan(0);
      expect(await metric(url, 'svc_kube_request_seconds_count', answered)).toBeGreaterThan(0);
      // Servers send bookmarks about once a minute, but a watch that lasts is enough.
      for (const resource of ['pods', 'slotspecs.inference.svc.dev']) {
        const label = `resource="${resource}"`;
        await eventually(
          `the copy of ${resource} is current on ${who}`,
          async () => (await fetch(`${url}/api/metrics`)).text(),
          (text) => text.includes(`svc_kube_copy_age_seconds{${label}} 0\n`),
        );
        expect(await metric(url, 'svc_kube_copy_lists_total', label)).toBeGreaterThan(0);
      }
      const replicas = async (slot: string) =>
        Promise.all(['desired', 'present', 'ready'].map(async (kind) => metric(url, `svc_slot_replicas_${kind}`, `slot="${slot}"`)));
      await eventually(
        `the replicas of slots are known to ${who}`,
        async () => [await replicas('primary'), await replicas('closed'), await replicas('nap'), (await replicas('homeless'))[0]],
        (seen) => JSON.stringify(seen) === JSON.stringify([[1, 1, 1], [0, 0, 0], [0, 0, 0], 1]),
      );
    }
    const transitions = await Promise.all([leader, follower].map(async ({ url }) => metric(url, 'svc_leader_transitions_total')));
    expect(transitions[0]).toBe(transitions[1]);
    expect(await metric(leader.url, 'svc_status_writes_total', 'what="status",result="done"')).toBeGreaterThan(0);
  }, 120_000);

  test('show the same states, conditions and restarts of every slot', async () => {
    const { leader, follower } = await both();
    await svc.until('homeless', 'unschedulable', (slot) => conditionOf(slot, 'Ready')?.reason === 'Unschedulable');
    const look = async () => ({ leader: await shownBy(leader), follower: await shownBy(follower) });
    const deadline = Date.now() + 20_000;
    let seen = await look();
    while (JSON.stringify(seen.leader) !== JSON.stringify(seen.follower) && Date.now() < deadline) seen = await look();
    expect(seen.follower).toEqual(seen.leader);
    expect(seen.leader).toHaveLength(4);
  }, 60_000);

  test('both accept edits and report conflicts', async () => {
    const { leader, follower } = await both();
    const created = await call(follower, 'PUT', 'embed', {
      spec: { provider: 'gguf', backend: 'cpu', enabled: false, model: { default: 'demo-embed' } },
    });
    expect(created.status).toBe(201);
    const before = await eventually(
      'the follower sees it',
      async () => slotAt(follower, 'embed'),
      (slot) => slot.status?.state === 'offline',
    );
    const changed = await call(follower, 'PATCH', 'embed', { spec: { priority: 7 } }, `"${before.resource_version}"`);
    expect(changed.status).toBe(200);
    const stale = await call(follower, 'PATCH', 'embed', { spec: { priority: 8 } }, `"${before.resource_version}"`);
    expect([stale.status, JSON.parse(await stale.text()).error.code]).toEqual([409, 'slot.conflict']);
    const after = await eventually(
      'the leader sees it',
      async () => slotAt(leader, 'embed'),
      (slot) => slot.spec.priority === 7,
    );
    expect((await call(leader, 'PATCH', 'embed', { spec: { priority: 9 } }, `"${after.resource_version}"`)).status).toBe(200);
    await svc.until(
      'embed',
      'edited',
      ({ spec, status, metadata }) => spec['priority'] === 9 && status?.observedGeneration === metadata.generation,
    );
    expect((await call(follower, 'DELETE', 'embed')).status).toBe(204);
    expect(await svc.kubectl(['get', 'slot', 'embed', '--ignore-not-found', '--output', 'name'])).toBe('');
  }, 90_000);

  test('are restarted one after the other without a lost request', async () => {
    const failures = await underLoad(async () => {
      await svc.kubectl(['rollout', 'restart', 'deployment/svc']);
      await svc.kubectl(['rollout', 'status', 'deployment/svc', '--timeout=120s']);
    });
    expect(failures).toEqual([]);
    await expectSamePods();
    await expectOneLeader();
  }, 240_000);

  test('lose no request when the leader’s pod is deleted, and have another leader within 2 s', async () => {
    const { leader } = await both();
    const ended = untilEnded(svc, leader.name);
    let handoverMs = Number.POSITIVE_INFINITY;
    let endedMs = Number.POSITIVE_INFINITY;
    const failures = await underLoad(async () => {
      const startedAt = performance.now();
      await svc.kubectl(['delete', 'pod', leader.name, '--wait=false']);
      await eventually(
        'another one is the leader',
        async () => svc.leader(),
        (name) => name !== leader.name && name !== '',
      );
      handoverMs = performance.now() - startedAt;
      await ended;
      endedMs = performance.now() - startedAt;
    });
    expect(failures).toEqual([]);
    expect(endedMs).toBeLessThan(ENDED_MS);
    // Plus the time of kubectl.
    expect(handoverMs).toBeLessThan(2000 + 1000);
    await expectSamePods();
    await expectOneLeader();
  }, 240_000);

  test('a request that waits for its slot in a stopping gateway is answered once the slot is ready', async () => {
    const { leader, follower } = await both();
    const waiting = [leader, follower].map(async ({ url }) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'nap', messages: [{ role: 'user', content: 'Hello' }] }),
      }),
    );
    await eventually(
      'both requests wait',
      async () => metricOfAll([leader, follower], 'svc_parked', 'slot="nap"'),
      (parked) => parked === 2,
    );
    const ended = untilEnded(svc, leader.name);
    await svc.kubectl(['delete', 'pod', leader.name, '--wait=false']);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    const answeredAt = performance.now();
    await ended;
    expect(performance.now() - answeredAt).toBeLessThan(ENDED_MS);
    await expectOneLeader();
  }, 120_000);

  test('lose only the requests in the leader’s pod when it is killed', async () => {
    const { leader } = await both();
    const failures = await underLoad(async () => {
      await svc.kubectl(['delete', 'pod', leader.name, '--grace-period=0', '--force']);
      await eventually(
        'another one is the leader',
        async () => svc.leader(),
        (name) => name !== leader.name && name !== '',
        15_000,
      );
    });
    expect(failures.length).toBeLessThanOrEqual(CLIENTS);
    await expectSamePods();
    await expectOneLeader();
  }, 240_000);

  test('are upgraded to another image while the pods of slots keep running', async () => {
    const image = process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test';
    const chart = await render(svc.namespace, 'replicas: 2\npodDisruptionBudget: { enabled: false }\n');
    // The init containers would use another image, which does not exist, so a pod that was created again would not start.
    const upgraded = chart.replace(
      `name: SVC_IMAGE\n              value: ${image}`,
      'name: SVC_IMAGE\n              value: localhost/svc:next',
    );
    expect(upgraded).not.toBe(chart);
    const failures = await underLoad(async () => {
      await svc.kubectl(['apply', '--filename', '-'], upgraded);
      await svc.kubectl(['rollout', 'status', 'deployment/svc', '--timeout=120s']);
    });
    expect(failures).toEqual([]);
    await expectSamePods();
    await expectOneLeader();
    expect(conditionOf(await svc.slot('primary'), 'DriftDetected')?.status).toBe('False');
  }, 240_000);
});
