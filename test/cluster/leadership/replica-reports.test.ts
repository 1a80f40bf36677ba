import { afterEach, describe, expect, test } from '@jest/globals';
import { TRAFFIC_ANNOTATION } from '../../../src/cluster/leadership/decide/traffic-report.ts';
import { countReplicas, createReplicaReports, type ReplicaReports } from '../../../src/cluster/leadership/replica-reports.ts';
import type { Traffic, Wake } from '../../../src/reconciler/ports.ts';
import { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import { factsOf } from './decide/traffic-fixture.ts';
import { createLeaseServer, type LeaseConnection, type LeaseCopy, type LeaseServer } from '../../support/kube/lease-api.ts';

const CHAT = SlotName.parse('chat');
const W = WorkloadId.parse('w');

interface Replica {
  readonly reports: ReplicaReports;
  readonly connection: LeaseConnection;
  readonly copy: LeaseCopy;
  readonly warnings: string[];
  readonly aborted: WorkloadId[];
  facts: ReturnType<Traffic['read']>;
  /** Added to both clocks. The wall clock also has an error of its own. */
  ahead: number;
  observes(facts: ReturnType<Traffic['read']>, withinMs?: number): void;
  now(): number;
  stop(): Promise<void>;
}

const running: Replica[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((replica) => replica.stop()));
});

interface ReplicaOptions {
  readonly wallError?: number;
  readonly leads?: boolean;
  readonly leaseDurationMs?: number;
}

function begin(
  server: LeaseServer,
  identity: string,
  { wallError = 0, leads = false, leaseDurationMs = 10_000 }: ReplicaOptions = {},
): Replica {
  const wakes = new Set<Wake>();
  const stopping = new AbortController();
  const copy = server.copy();
  const connection = server.connect();
  const made: Omit<Replica, 'reports' | 'stop'> = {
    connection,
    copy,
    warnings: [],
    aborted: [],
    facts: factsOf(),
    ahead: 0,
    observes(facts, withinMs = 0) {
      made.facts = facts;
      for (const wake of wakes) wake(withinMs);
    },
    // Each process begins to count at another moment.
    now: () => performance.now() + wallError / 7 + made.ahead,
  };
  const reports = createReplicaReports({
    api: connection.api,
    leases: copy,
    identity,
    podUid: `uid-of-${identity}`,
    local: {
      read: () => made.facts,
      abort: (workload) => void made.aborted.push(workload),
      changes: (wake) => void wakes.add(wake),
    },
    leads: () => leads,
    leaseDurationMs,
    tidyMs: 20,
    now: () => Date.now() + wallError + made.ahead,
    monotonic: made.now,
    log: { warn: (_fields, message) => void made.warnings.push(message) },
  });
  const ended = reports.start(stopping.signal);
  const replica: Replica = Object.assign(made, {
    reports,
    async stop() {
      stopping.abort();
      await ended;
    },
  });
  running.push(replica);
  return replica;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const waitingAt = ({ reports }: Replica): number => reports.traffic.read().demand.get(CHAT)?.waiting ?? 0;
const sleep = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

describe('createReplicaReports()', () => {
  test('reports demand of one replica to the others immediately, whatever their clocks show', async () => {
    const server = createLeaseServer();
    const [asked, leader] = [begin(server, 'pod-a', { wallError: 7_200_000 }), begin(server, 'pod-b', { wallError: -86_400_000 })];
    await until(() => server.object('svc-gateway-pod-a') !== undefined && server.object('svc-gateway-pod-b') !== undefined);
    const wakes: (number | undefined)[] = [];
    leader.reports.traffic.changes((withinMs) => void wakes.push(withinMs), new AbortController().signal);
    asked.observes(factsOf({ chat: [3, asked.now() - 500] }, { w: [2, asked.now() - 4000] }));
    await until(() => waitingAt(leader) === 3);
    const { demand, workloads } = leader.reports.traffic.read();
    expect(wakes).toEqual([0]);
    expect(workloads.get(W)?.inFlight).toBe(2);
    // As long ago by the clock of the leader as by that of the other replica, except for the second between two reports.
    const agoMs = leader.now() - (demand.get(CHAT)?.lastAskedAt ?? 0);
    expect(agoMs).toBeGreaterThanOrEqual(400);
    expect(agoMs).toBeLessThan(60_000);
  });

  test('writes its identity into a Lease that its pod owns', async () => {
    const server = createLeaseServer();
    begin(server, 'pod-a');
    await until(() => server.object('svc-gateway-pod-a') !== undefined);
    expect(server.object('svc-gateway-pod-a')).toMatchObject({
      metadata: {
        labels: { 'inference.svc.dev/component': 'gateway', 'app.kubernetes.io/managed-by': 'svc' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'pod-a', uid: 'uid-of-pod-a' }],
      },
      spec: { holderIdentity: 'pod-a', leaseDurationSeconds: 300 },
    });
  });

  test('writes once when activity begins, and not again while it continues', async () => {
    const server = createLeaseServer();
    const busy = begin(server, 'pod-a');
    await until(() => server.requests.length === 1);
    for (let index = 0; index < 150; index += 1) {
      busy.observes(factsOf({ chat: [index % 7, busy.now()] }, { w: [index, busy.now()] }), index % 2 === 0 ? 0 : 250);
      await sleep(10);
    }
    expect(server.requests.length).toBeLessThanOrEqual(3);
    expect(server.requests.length).toBeGreaterThanOrEqual(2);
  });

  test('renews while a request is in flight, and continues after an outage of the server', async () => {
    const server = createLeaseServer();
    const idle = begin(server, 'pod-a', { leaseDurationMs: 300 });
    idle.observes(factsOf({}, { w: [1, idle.now()] }));
    await until(() => server.requests.length >= 3);
    idle.connection.network = 'refused';
    await until(() => idle.warnings.length === 1);
    idle.connection.network = 'fine';
    const { resourceVersion } = server.object('svc-gateway-pod-a')?.metadata ?? {};
    await until(() => server.object('svc-gateway-pod-a')?.metadata.resourceVersion !== resourceVersion);
    server.remove('svc-gateway-pod-a');
    await until(() => server.object('svc-gateway-pod-a') !== undefined);
  });

  test('ignores requests that wait at a silent replica, but keeps the time of last use', async () => {
    const server = createLeaseServer();
    const [crashing, leader] = [begin(server, 'pod-a'), begin(server, 'pod-b')];
    crashing.observes(factsOf({ chat: [3, crashing.now()] }, { w: [2, crashing.now()] }));
    await until(() => waitingAt(leader) === 3);
    crashing.connection.network = 'refused';
    leader.ahead += 60_000;
    expect(waitingAt(leader)).toBe(0);
    const { workloads } = leader.reports.traffic.read();
    expect(workloads.get(W)?.inFlight).toBe(0);
    expect(workloads.get(W)?.lastUsedAt).toBeLessThanOrEqual(leader.now() - 60_000);
  });

  test('ignores an earlier report until it is renewed, unless its renewal time is recent', async () => {
    const annotation = { [TRAFFIC_ANNOTATION]: '{"version":1,"demand":{"chat":[3,0]},"use":{}}' };
    const server = createLeaseServer();
    const put = (name: string, renewTime: number): void =>
      server.put(name, ({ metadata }) => ({
        metadata: { ...metadata, annotations: annotation },
        spec: { renewTime: new Date(renewTime).toISOString() },
      }));
    put('svc-gateway-dead', Date.now() - 3_600_000);
    const leader = begin(server, 'pod-b');
    expect(waitingAt(leader)).toBe(0);
    put('svc-gateway-dead', Date.now() - 3_590_000);
    expect(waitingAt(leader)).toBe(3);
    put('svc-gateway-new', Date.now());
    expect(waitingAt(leader)).toBe(6);
  });

  test('ignores an invalid report, and warns once', async () => {
    const server = createLeaseServer();
    const leader = begin(server, 'pod-b');
    for (const text of ['', '{"version":1}', 'x'.repeat(1000)]) {
      server.put('svc-gateway-bad', ({ metadata }) => ({ metadata: { ...metadata, annotations: { [TRAFFIC_ANNOTATION]: text } } }));
      expect(leader.reports.traffic.read().demand.size).toBe(0);
    }
    expect(leader.warnings).toHaveLength(1);
  });

  test('removes, as the leader, a Lease that has not changed for five minutes, unless only its copy is outdated', async () => {
    const server = createLeaseServer();
    const [follower, leader] = [begin(server, 'pod-a'), begin(server, 'pod-b', { leads: true })];
    for (const name of ['svc-gateway-dead', 'svc-gateway-alive', 'others-dead']) server.put(name, (before) => before);
    follower.ahead += 600_000;
    await sleep(100);
    expect(server.object('svc-gateway-dead')).toBeDefined();
    leader.copy.isCutOff = true;
    leader.reports.traffic.read();
    server.put('svc-gateway-alive', (before) => before);
    leader.ahead += 240_000;
    await sleep(100);
    expect(server.object('svc-gateway-dead')).toBeDefined();
    leader.ahead += 120_000;
    await until(() => server.object('svc-gateway-dead') === undefined);
    await sleep(100);
    expect([server.object('svc-gateway-alive'), server.object('others-dead')]).not.toContain(undefined);
  });

  test('removes its Lease when it stops, and aborts only requests of its own replica', async () => {
    const server = createLeaseServer();
    const replica = begin(server, 'pod-a');
    await until(() => server.object('svc-gateway-pod-a') !== undefined);
    replica.reports.traffic.abort(W);
    expect(replica.aborted).toEqual([W]);
    await replica.stop();
    expect(server.object('svc-gateway-pod-a')).toBeUndefined();
  });
});

test('replicas count the Leases of all that report, and keep the last count while the API server does not answer', async () => {
  const server = createLeaseServer();
  const { api } = server.connect();
  const cutOff = server.connect();
  const counts = { one: 0, other: 0 };
  const stopping = new AbortController();
  server.put('svc-controller', (before) => before);
  const follower = { leases: { items: () => new Map() }, leads: () => false, everyMs: 5 };
  const ended = Promise.all([
    countReplicas({ ...follower, api, identity: 'pod-a', onCount: (count) => (counts.one = count) }, stopping.signal),
    countReplicas({ ...follower, api: cutOff.api, identity: 'pod-c', onCount: (count) => (counts.other = count) }, stopping.signal),
  ]);
  await until(() => counts.one === 1 && counts.other === 1);
  for (const name of ['pod-a', 'pod-b']) server.put(`svc-gateway-${name}`, (before) => before);
  // Whoever has not reported yet counts itself.
  await until(() => counts.one === 2 && counts.other === 3);
  cutOff.network = 'refused';
  server.remove('svc-gateway-pod-b');
  await until(() => counts.one === 1);
  expect(counts.other).toBe(3);
  stopping.abort();
  await ended;
});

test('a leader counts the Leases in its copy, without a request, and lists them once it does not lead', async () => {
  const server = createLeaseServer();
  const copy = server.copy();
  const stopping = new AbortController();
  const [leading, counts]: [{ now: boolean }, number[]] = [{ now: true }, []];
  const ended = countReplicas(
    {
      api: server.connect().api,
      identity: 'pod-a',
      leases: copy,
      leads: () => leading.now,
      onCount: (count) => void counts.push(count),
      everyMs: 5,
    },
    stopping.signal,
  );
  for (const name of ['svc-controller', 'svc-gateway-pod-a', 'svc-gateway-pod-b']) server.put(name, (before) => before);
  await until(() => counts.at(-1) === 2);
  copy.isCutOff = true;
  server.put('svc-gateway-pod-c', (before) => before);
  const { length } = counts;
  await until(() => counts.length > length + 2);
  expect([counts.at(-1), server.requests]).toEqual([2, []]);
  leading.now = false;
  await until(() => counts.at(-1) === 3);
  expect(server.requests).not.toEqual([]);
  stopping.abort();
  await ended;
});
