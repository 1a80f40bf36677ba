/**
 * A network that fails silently: every open connection stays open but transports nothing more, while new ones work. Watches then deliver no events, and
 * requests on a kept-alive connection get no answer.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { startClusterProxy, type ClusterProxy } from '../support/live-cluster/cluster-proxy.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { demoSlot, isReady } from '../support/live-cluster/cluster.ts';
import { sentBetween, total } from '../support/live-cluster/controller-counts.ts';
import { watchDeployments, type DeploymentHistory } from '../support/live-cluster/deployment-history.ts';
import { logLeaders, type LeaderLog } from '../support/live-cluster/leader-log.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';
import { untilAtRest } from '../support/live-cluster/slot-objects.ts';

const RELIST_MS = 5000;
/** A list is due by then; on a kept-alive connection it fails after a third of a request's 30 s, and is answered on a new one. */
const SEEN_WITHIN_MS = 1.1 * RELIST_MS + 10_000 + 5000;
/** Between further stalls, while the edit is carried out. */
const AGAIN_MS = 2000;
/** SlotSpecs, Deployments, Services, ConfigMaps, Pods, Leases. */
const WATCHES = 6;
const WANTED = new Map([['primary', 1]]);

describeWithCluster('A controller whose connections go silent', () => {
  let proxy: ClusterProxy;
  let space: ClusterNamespace;
  let controller: ClusterController;
  let rival: ClusterController;
  let log: LeaderLog;
  let history: DeploymentHistory;
  beforeAll(async () => {
    proxy = await startClusterProxy();
    space = await createClusterNamespace('silent', () => controller.output());
    const environment = { SVC_RELIST: `${RELIST_MS / 1000}s` };
    const options = { namespace: space.name, environment };
    controller = await createClusterController({ ...options, identity: 'gateway-a', kubeconfig: proxy.kubeconfig });
    rival = await createClusterController({ ...options, identity: 'gateway-b' });
    log = logLeaders({ controller, rival });
    history = await watchDeployments(space.name);
    await controller.start();
    while (log.leaders.length === 0) await pause(20);
    await rival.start();
    await space.apply(demoSlot('primary', 'demo-fox'));
    await space.untilReady(['primary']);
    await untilAtRest(space.name, WANTED);
  }, 120_000);
  afterAll(async () => {
    await log?.stop();
    await history?.stop();
    await controller?.dispose();
    await rival?.dispose();
    await space?.dispose();
    await proxy?.close();
  }, 60_000);

  test.each([1, 4])(
    'carries out an edit made meanwhile, and stays the leader: silent %i times',
    async (times) => {
      const before = await controller.counts();
      const startedAt = performance.now();
      const created = history.created();
      while (proxy.connections() < WATCHES) await pause(20);
      proxy.stall();
      await space.patch('primary', { env: { EDITED: String(times) } });
      const again = (async () => {
        for (let stalls = 1; stalls < times; stalls += 1) {
          await pause(AGAIN_MS);
          proxy.stall();
        }
      })();
      while (history.created() === created && performance.now() - startedAt < SEEN_WITHIN_MS) await pause(20);
      const seenMs = performance.now() - startedAt;
      await again;
      await space.until('primary', 'ready with the edit', isReady, 60_000);
      await untilAtRest(space.name, WANTED);
      const sent = sentBetween(before, await controller.counts());
      const seconds = (performance.now() - startedAt) / 1000;
      process.stdout.write(
        `silent ${times} times: seen after ${Math.round(seenMs)} ms, ready after ${seconds.toFixed(1)} s, ${total(sent)} requests: ${JSON.stringify([...sent])}\n`,
      );
      expect(log.leaders).toEqual(['controller']);
      expect(log.trespasses).toEqual([]);
      expect(history.created()).toBe(created + 1);
      expect(history.duplicates).toEqual([]);
      expect(total(sent)).toBeLessThan(mostRequests(seconds, times));
    },
    180_000,
  );
});

/** Each kind is listed and watched again once per re-list and once per stall; the Leases are renewed; one swap is carried out. */
function mostRequests(seconds: number, stalls: number): number {
  const rounds = Math.ceil(seconds / ((0.9 * RELIST_MS) / 1000)) + stalls;
  const swap = 30;
  return WATCHES * 2 * rounds + seconds + swap;
}
