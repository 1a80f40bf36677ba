/** A second controller is started, and by mistake a third with the identity of the first: one is the leader, and only the leader writes. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { demoSlot } from '../support/live-cluster/cluster.ts';
import { watchDeployments, type DeploymentHistory } from '../support/live-cluster/deployment-history.ts';
import { logLeaders, type LeaderLog } from '../support/live-cluster/leader-log.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';
import { findFaults, listSlotObjects, untilAtRest } from '../support/live-cluster/slot-objects.ts';

/** What the product promises for a handover. */
const AFTER_CRASH_MS = 15_000;
const AFTER_STOP_MS = 2000;

describeWithCluster('Three controllers, two of them with the same identity', () => {
  let space: ClusterNamespace;
  let controllers: Readonly<Record<'first' | 'second' | 'namesake', ClusterController>>;
  let log: LeaderLog;
  let history: DeploymentHistory;
  beforeAll(async () => {
    space = await createClusterNamespace('replicas', () =>
      Object.values(controllers)
        .map((each) => each.output())
        .join('\n'),
    );
    const create = async (identity: string) => createClusterController({ namespace: space.name, identity });
    controllers = { first: await create('gateway-a'), second: await create('gateway-b'), namesake: await create('gateway-a') };
    log = logLeaders(controllers);
    history = await watchDeployments(space.name);
  }, 60_000);
  afterAll(async () => {
    await log?.stop();
    await history?.stop();
    for (const each of Object.values(controllers ?? {})) await each.dispose();
    await space?.dispose();
  }, 60_000);

  const leader = (): ClusterController => {
    const [, found] = Object.entries(controllers).find(([name]) => name === log.leaders.at(-1)) ?? [];
    if (found === undefined) throw new Error('There is no leader');
    return found;
  };
  /** Changes the slot's environment, and returns how long it took until a Deployment was created for it. */
  const edit = async (text: string): Promise<number> => {
    const created = history.created();
    const startedAt = performance.now();
    await space.patch('primary', { env: { EDITED: text } });
    while (history.created() === created && performance.now() - startedAt < 30_000) await pause(10);
    return performance.now() - startedAt;
  };

  test('have one leader from the beginning', async () => {
    // Three programs start meanwhile.
    const begins = log.nextLeader(60_000);
    await controllers.first.start();
    await Promise.all([controllers.second.start(), controllers.namesake.start()]);
    await begins;
    await space.apply(demoSlot('primary', 'demo-fox'));
    await space.untilReady(['primary']);
    expect(log.leaders).toHaveLength(1);
  }, 120_000);

  test('have another leader after the leader crashed', async () => {
    const crashed = leader();
    const lease = JSON.parse(await space.kubectl(['get', 'lease', 'svc-controller', '--output', 'json']));
    const successor = log.nextLeader(AFTER_CRASH_MS);
    await crashed.kill('SIGKILL');
    const editedMs = edit('after the crash');
    const { name, afterMs } = await successor;
    process.stdout.write(
      `after a crash: ${name} led after ${Math.round(afterMs)} ms; an edit was carried out after ${Math.round(await editedMs)} ms\n`,
    );
    expect(afterMs).toBeLessThan(AFTER_CRASH_MS);
    // Not before the crashed leader's Lease may have expired: it was renewed up to a quarter of its duration before.
    expect(afterMs).toBeGreaterThan(lease.spec.leaseDurationSeconds * 750 - 500);
    await crashed.start();
    await untilAtRest(space.name, new Map([['primary', 1]]));
    expect(log.leaders).toHaveLength(2);
  }, 120_000);

  test('have another leader at once after the leader was stopped', async () => {
    const stopped = leader();
    const successor = log.nextLeader(AFTER_STOP_MS);
    const ended = stopped.kill('SIGTERM');
    const { name, afterMs } = await successor;
    const editedMs = await edit('after the stop');
    process.stdout.write(
      `after a stop: ${name} led after ${Math.round(afterMs)} ms; an edit was carried out after ${Math.round(editedMs)} ms\n`,
    );
    expect(afterMs).toBeLessThan(AFTER_STOP_MS);
    await ended;
    await untilAtRest(space.name, new Map([['primary', 1]]));
    expect(log.leaders).toHaveLength(3);
  }, 120_000);

  test('never had two leaders, wrote only as the leader, and created nothing twice', async () => {
    // A controller that leads again after another one would be listed once more.
    expect(log.leaders).toHaveLength(3);
    expect(log.rounds()).toBeGreaterThan(100);
    expect(log.trespasses).toEqual([]);
    expect(history.duplicates).toEqual([]);
    // One for the slot, and one for each edit.
    expect(`${history.created()}\n${history.describe()}`).toMatch(/^3\n/);
    expect(findFaults(await listSlotObjects(space.name), new Map([['primary', 1]]))).toEqual([]);
  });
});
