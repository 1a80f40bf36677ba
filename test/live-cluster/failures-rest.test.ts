/** Counts the requests to the API server of a service with two replicas whose slots are ready and unused. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { demoSlot } from '../support/live-cluster/cluster.ts';
import { isOfLeases, sentBetween, total } from '../support/live-cluster/controller-counts.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';
import { listSlotObjects, untilAtRest } from '../support/live-cluster/slot-objects.ts';

const SLOTS = ['one', 'two', 'three', 'four', 'five'];
const WANTED = new Map(SLOTS.map((name) => [name, 1]));
const REST_S = 60;
const LEASE_S = 10;
/** Copies at the leader: each has one watch, which lasts five minutes at least and begins with the process. A follower has those of every gateway. */
const COPIES = { leader: 8, follower: 4 };
/** More often than by default, so that the cost of a re-list is visible. */
const RELIST_S = 20;

describeWithCluster('A service at rest', () => {
  let space: ClusterNamespace;
  let replicas: readonly [ClusterController, ClusterController];
  beforeAll(async () => {
    space = await createClusterNamespace('rest', () => replicas.map((each) => each.output()).join('\n'));
    const environment = { SVC_RELIST: `${RELIST_S}s`, SVC_LEASE_DURATION: `${LEASE_S}s` };
    const make = async (identity: string) => createClusterController({ namespace: space.name, identity, environment });
    replicas = [await make('gateway-a'), await make('gateway-b')];
    await Promise.all(replicas.map((each) => each.start()));
    await space.apply(SLOTS.map((name) => demoSlot(name, 'demo-fox')).join(''));
    await space.untilReady(SLOTS);
    await untilAtRest(space.name, WANTED);
  }, 240_000);
  afterAll(async () => {
    for (const each of replicas ?? []) await each.dispose();
    await space?.dispose();
  }, 240_000);

  test('sends nothing but watches, Leases and periodic lists', async () => {
    // Statuses that are not urgent are written within ten seconds.
    await pause(11_000);
    const objects = await listSlotObjects(space.name);
    const begunAt = performance.now();
    const before = await Promise.all(replicas.map((each) => each.counts()));
    await pause(REST_S * 1000);
    const after = await Promise.all(replicas.map((each) => each.counts()));
    // Reading the counts takes seconds on a busy machine.
    const restS = (performance.now() - begunAt) / 1000;
    const sent = replicas.map((_, index) => sentBetween(before[index] ?? fault(), after[index] ?? fault()));
    process.stdout.write(
      `at rest for ${restS.toFixed(0)} s with ${SLOTS.length} slots: ${JSON.stringify(sent.map((each) => [...each]))}\n`,
    );
    for (const [index, each] of sent.entries()) {
      const leads = after[index]?.leads === true;
      const copies = leads ? COPIES.leader : COPIES.follower;
      const lists = total(each, (key) => key.startsWith('list '));
      const watches = total(each, (key) => key.startsWith('watch '));
      const leases = total(each, (key) => isOfLeases(key) && !/^(?:list|watch) /.test(key));
      // A list runs after nine tenths of its interval at the earliest, followed by a watch. A streamed list is a watch, too.
      const rounds = Math.ceil(restS / (0.9 * RELIST_S));
      expect(lists).toBeLessThanOrEqual(copies * rounds + 2);
      // Without authentication, nobody has limits of which a gateway enforces its part, so no gateway counts the others.
      expect(each.get('list leases.coordination.k8s.io') ?? 0).toBeLessThanOrEqual(leads ? rounds : 0);
      expect(lists + watches).toBeLessThanOrEqual(2 * copies * rounds + 4);
      // Per lease duration, the leader renews four times. Each replica reports every two minutes.
      expect(leases).toBeLessThanOrEqual(Math.ceil((restS / LEASE_S) * 5) + 2);
      expect(total(each)).toBe(lists + watches + leases);
    }
    expect(await listSlotObjects(space.name)).toEqual(objects);
  }, 120_000);
});

function fault(): never {
  throw new Error('There are two replicas');
}
