/** Tests leader election and the reports of replicas on a real API server, with its versions, preconditions, validation and watches. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createKubeApi } from '../../src/cluster/client/api-client.ts';
import { createLeadership } from '../../src/cluster/leadership/leadership.ts';
import type { KubeApi, Leadership } from '../../src/cluster/client/ports.ts';
import { eventually } from '../support/eventually.ts';
import { createReflector } from '../../src/cluster/client/reflector.ts';
import { createReplicaReports } from '../../src/cluster/leadership/replica-reports.ts';
import { LEASES } from '../../src/cluster/client/decide/resource-path.ts';
import { fail } from '../../src/schema/words/failure.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import type { Traffic, Wake } from '../../src/reconciler/ports.ts';
import { factsOf } from '../cluster/leadership/decide/traffic-fixture.ts';
import { valueOf } from '../support/kube/kube-api-contract.ts';
import { describeWithCluster, kubectl, KUBECONFIG } from '../support/require/require-cluster.ts';

/** The default. */
const DURATION_MS = 10_000;
const sleep = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

describeWithCluster('replicas on a real API server', () => {
  const namespace = `svc-test-lead-${randomBytes(3).toString('hex')}`;
  const replicas: Replica[] = [];

  interface Replica {
    readonly leadership: Leadership;
    /** Sends nothing any more, while its clock continues. */
    crash(): void;
    stop(): Promise<void>;
  }

  async function begin(identity: string): Promise<Replica> {
    const api = valueOf(await createKubeApi({ env: { KUBECONFIG }, namespace, version: 'test' }));
    const stopping = new AbortController();
    const life = { crashed: false };
    const gate = async <T>(send: () => Promise<T>): Promise<T | ReturnType<typeof fail>> =>
      life.crashed ? fail('retry', 'ApiUnreachable', 'The process is dead') : await send();
    const mortal: KubeApi = {
      ...api,
      get: (...args) => gate(() => api.get(...args)),
      create: (...args) => gate(() => api.create(...args)),
      replace: (...args) => gate(() => api.replace(...args)),
      stream: (...args) => gate(() => api.stream(...args)),
    };
    const leadership = createLeadership({
      api: mortal,
      name: 'svc-controller',
      identity,
      leaseDurationMs: DURATION_MS,
      now: () => Date.now(),
    });
    const ended = leadership.start(stopping.signal);
    const replica: Replica = {
      leadership,
      crash: () => void (life.crashed = true),
      async stop() {
        stopping.abort();
        await ended;
      },
    };
    replicas.push(replica);
    return replica;
  }

  const leaders = (): readonly Replica[] => replicas.filter(({ leadership }) => leadership.leads());
  const lease = async (): Promise<Record<string, unknown>> =>
    JSON.parse(await kubectl(['-n', namespace, 'get', 'lease', 'svc-controller', '-o', 'json'])).spec;

  async function untilLeads(which: (leader: Replica) => boolean): Promise<{ leader: Replica; ms: number }> {
    const startedAt = performance.now();
    for (;;) {
      const [leader, ...more] = leaders();
      expect(more).toEqual([]);
      if (leader !== undefined && which(leader)) return { leader, ms: performance.now() - startedAt };
      await sleep(5);
    }
  }

  beforeAll(async () => {
    await kubectl(['create', 'namespace', namespace]);
  }, 60_000);

  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.stop()));
    await kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  test('one replica is the leader, and another takes over within 2 s of a clean stop, within 15 s of a crash, and after the Lease was deleted', async () => {
    await begin('pod-a');
    await begin('pod-b');
    await begin('pod-c');
    const first = (await untilLeads(() => true)).leader;
    await first.stop();
    const second = await untilLeads((leader) => leader !== first);
    expect(second.ms).toBeLessThan(2000);
    expect(await lease()).toMatchObject({
      holderIdentity: second.leader.leadership.holder(),
      leaseDurationSeconds: 10,
      leaseTransitions: 1,
    });
    await kubectl(['-n', namespace, 'delete', 'lease', 'svc-controller']);
    await sleep(DURATION_MS / 2);
    const third = await untilLeads(() => true);
    third.leader.crash();
    const fourth = await untilLeads((leader) => leader !== third.leader);
    expect(fourth.ms).toBeLessThan(15_000);
    expect(leaders()).toEqual([fourth.leader]);
  }, 120_000);

  test('demand at one replica is known to another at once', async () => {
    const stop = new AbortController();
    const chat = SlotName.parse('chat');
    const [asked, other] = await Promise.all(['pod-x', 'pod-y'].map((identity) => report(identity, stop.signal)));
    if (asked === undefined || other === undefined) throw new Error('There are not two reports');
    await sleep(1500);
    const startedAt = performance.now();
    asked.happens(factsOf({ chat: [2, Date.now()] }));
    while (other.traffic.read().demand.get(chat)?.waiting !== 2) await sleep(5);
    expect(performance.now() - startedAt).toBeLessThan(2000);
    stop.abort();
    await Promise.all([asked.ended, other.ended]);
    const left = await kubectl(['-n', namespace, 'get', 'leases', '-l', 'inference.svc.dev/component=gateway', '-o', 'name']);
    expect(left.trim()).toBe('');
  }, 60_000);

  async function report(identity: string, signal: AbortSignal) {
    const api = valueOf(await createKubeApi({ env: { KUBECONFIG }, namespace, version: 'test' }));
    const leases = createReflector({ api, type: LEASES, labelSelector: 'inference.svc.dev/component=gateway' });
    leases.start(signal);
    await eventually('the first list', () => leases.health().kind === 'current');
    const wakes = new Set<Wake>();
    let facts = factsOf();
    const local: Traffic = { read: () => facts, abort: () => undefined, changes: (wake) => void wakes.add(wake) };
    const reports = createReplicaReports({
      api,
      leases,
      identity,
      local,
      leads: () => false,
      leaseDurationMs: DURATION_MS,
      now: () => Date.now(),
    });
    return {
      traffic: reports.traffic,
      ended: reports.start(signal),
      happens(next: ReturnType<typeof factsOf>) {
        facts = next;
        for (const wake of wakes) wake(0);
      },
    };
  }
});
