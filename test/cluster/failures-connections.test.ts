/**
 * A network that breaks without a word: every connection that is open transports nothing more and stays open, while new ones are served. Watches are silent
 * then, and whatever is asked on a kept connection gets no answer.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClusterController, type ClusterController } from '../support/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/cluster-namespace.ts';
import { demoSlot, isReady } from '../support/cluster.ts';
import { isOfLeases, sentBetween, total } from '../support/controller-counts.ts';
import { watchDeployments, type DeploymentHistory } from '../support/deployment-history.ts';
import { logLeaders, type LeaderLog } from '../support/leader-log.ts';
import { describeWithCluster } from '../support/require-cluster.ts';
import { pause } from '../support/service.ts';
import { untilAtRest } from '../support/slot-objects.ts';
import { startStallingProxy, type StallingProxy } from '../support/stalling-proxy.ts';

const RELIST_MS = 5000;
const WANTED = new Map([['primary', 1]]);

describeWithCluster('A controller whose connections go silent', () => {
  let proxy: StallingProxy;
  let space: ClusterNamespace;
  let controller: ClusterController;
  let rival: ClusterController;
  let log: LeaderLog;
  let history: DeploymentHistory;
  beforeAll(async () => {
    proxy = await startStallingProxy();
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

  test.each(['once', 'twice', 'again and again'])('sees an edit made meanwhile and carries it out, and goes on leading: %s', async (often) => {
    const before = await controller.counts();
    const begun = performance.now();
    const made = history.made();
    expect(proxy.connections()).toBeGreaterThan(6);
    proxy.stall();
    await space.patch('primary', { env: { EDITED: often } });
    let stalls = 1;
    while (history.made() === made && performance.now() - begun < 60_000) {
      await pause(100);
      const due = often === 'once' ? 1 : often === 'twice' ? 2 : Math.ceil((performance.now() - begun) / 2000);
      if (performance.now() - begun > stalls * 2000 && stalls < due && stalls < 5) {
        proxy.stall();
        stalls += 1;
      }
    }
    const seenMs = performance.now() - begun;
    await space.until('primary', 'ready with the edit', isReady, 60_000);
    await untilAtRest(space.name, WANTED);
    const sent = sentBetween(before, await controller.counts());
    const seconds = (performance.now() - begun) / 1000;
    process.stdout.write(
      `silent ${often}: seen after ${Math.round(seenMs)} ms, ready after ${seconds.toFixed(1)} s, ${total(sent)} requests: ${JSON.stringify([...sent])}\n`,
    );
    expect(log.leaders).toEqual(['controller']);
    expect(log.trespasses).toEqual([]);
    expect(history.made()).toBe(made + 1);
    expect(history.duplicates).toEqual([]);
    expect(total(sent, isOfLeases)).toBeLessThan(seconds);
  }, 180_000);
});
