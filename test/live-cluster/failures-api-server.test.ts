/**
 * The API server is stopped for a minute and started again; a second time its store is compacted meanwhile, so that it only has the present versions.
 * SVC_TEST_OUTAGE_S sets another length.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { startClusterProxy, type ClusterProxy } from '../support/live-cluster/cluster-proxy.ts';
import { compactStore, describeWithClusterTool, startApiServer, stopApiServer } from '../support/live-cluster/cluster-tool.ts';
import { demoSlot, isReady } from '../support/live-cluster/cluster.ts';
import { isOfLeases, sentBetween, total } from '../support/live-cluster/controller-counts.ts';
import { logLeaders, type LeaderLog } from '../support/live-cluster/leader-log.ts';
import { chatText, pause } from '../support/service.ts';
import { findFaults, listSlotObjects, untilAtRest } from '../support/live-cluster/slot-objects.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';

const OUTAGE_S = Number(process.env['SVC_TEST_OUTAGE_S'] ?? 60);
/**
 * Requests that one controller may send to an unreachable server. Each of six kinds is requested less and less often, in the end every 7.5 s on average; the
 * leader tries to renew its Lease twice a second during its term, and then, like the others, every two seconds; a report follows every ten. That is 2.5 a second.
 */
const MOST_PER_S = 4;
/** Otherwise V8's young generation grows by up to 50 MB at some moment, with the requests of the test and whatever the API server does. */
const SMALL_YOUNG_GENERATION = '--max-semi-space-size=1';
const WARM_UP_S = 20;
const WARM_UP_CLIENTS = 4;
/** For garbage not collected yet, and the streams in flight: with a small young generation, memory grew by 0 to 6 MB in this time. */
const MEMORY_SLACK_BYTES = 48 * 1024 * 1024;
/** The cluster's own controllers need up to a minute, after an outage, until they make the pods of a Deployment again, or remove those of one that is gone. */
const SETTLED_WITHIN_MS = 180_000;
const RESTING = new Map([
  ['primary', 1],
  ['lazy', 0],
]);
const AWAKE = new Map([
  ['primary', 1],
  ['lazy', 1],
]);

describeWithClusterTool('A cluster whose API server is down', () => {
  let proxy: ClusterProxy;
  let space: ClusterNamespace;
  let controllers: Readonly<Record<'a' | 'b', ClusterController>>;
  let log: LeaderLog;
  beforeAll(async () => {
    proxy = await startClusterProxy();
    space = await createClusterNamespace('server', () => `${controllers.a.output()}\n${controllers.b.output()}`);
    const options = { namespace: space.name, environment: { NODE_OPTIONS: SMALL_YOUNG_GENERATION } };
    controllers = {
      a: await createClusterController({ ...options, identity: 'gateway-a', kubeconfig: proxy.kubeconfig }),
      b: await createClusterController({ ...options, identity: 'gateway-b' }),
    };
    log = logLeaders(controllers);
    await Promise.all([controllers.a.start(), controllers.b.start()]);
    await space.apply(`${demoSlot('primary', 'demo-fox')}${demoSlot('lazy', 'demo-owl', '  load: on-demand\n')}`);
    await space.untilReady(['primary']);
    await untilAtRest(space.name, RESTING);
  }, 120_000);
  afterAll(async () => {
    await startApiServer();
    await log?.stop();
    for (const each of Object.values(controllers ?? {})) await each.dispose();
    await space?.dispose();
    await proxy?.close();
  }, 180_000);

  const both = async <T>(ask: (controller: ClusterController) => Promise<T>): Promise<readonly [T, T]> =>
    Promise.all([ask(controllers.a), ask(controllers.b)]);

  test(`serves for ${OUTAGE_S} s: requests are answered, demand waits, and retries are limited`, async () => {
    const before = await listSlotObjects(space.name);
    const warmUp = await both(async (each) => startStreamLoop(each, WARM_UP_CLIENTS));
    await pause(WARM_UP_S * 1000);
    const warm = await Promise.all(warmUp.map((loop) => loop.end()));
    expect(warm.flatMap(({ failures }) => failures)).toEqual([]);
    // Slowly, since the memory of requests is not the subject.
    const ask = (each: ClusterController) => async (body: object | undefined, signal?: AbortSignal) => {
      await pause(100);
      return each.chat({ model: 'primary', ...body }, signal);
    };
    const loops = await both(async (each) => startStreamLoop({ chat: ask(each) }, 1));
    await pause(1000);
    await stopApiServer();
    const stopped = await both(async (each) => each.counts());
    const woken = { settled: 0, answers: both(async (each) => each.chat({ model: 'lazy' })) };
    woken.answers.then(
      () => (woken.settled += 1),
      () => (woken.settled += 1),
    );
    await pause((OUTAGE_S * 1000) / 2);
    // By then, old garbage is collected as often as it is made.
    const halfway = await both(async (each) => each.counts());
    await pause((OUTAGE_S * 1000) / 2);
    const ended = await both(async (each) => each.counts());
    const during = loops.map(({ score }) => score.requests);
    expect(woken.settled).toBe(0);
    await startApiServer();
    const startedAt = performance.now();
    const texts = await Promise.all((await woken.answers).map(chatText));
    const wokenMs = Math.round(performance.now() - startedAt);
    expect(texts).toEqual([DEMO_SENTENCES['demo-owl'], DEMO_SENTENCES['demo-owl']]);
    const after = await untilAtRest(space.name, AWAKE, SETTLED_WITHIN_MS);
    const restMs = Math.round(performance.now() - startedAt);
    const scores = await Promise.all(loops.map((loop) => loop.end()));

    const sent = stopped.map((counts, index) => sentBetween(counts, ended[index] ?? counts));
    const grownMb = halfway.map((counts, index) => Math.round(((ended[index] ?? counts).residentBytes - counts.residentBytes) / 2 ** 20));
    process.stdout.write(
      `away for ${OUTAGE_S} s: ${JSON.stringify(during)} requests answered meanwhile, ${JSON.stringify(sent.map((each) => [total(each), total(each, isOfLeases), [...each]]))} asked, ${JSON.stringify(grownMb)} MB grown in the second half; the waiting requests answered ${wokenMs} ms, at rest ${restMs} ms after the start\n`,
    );
    expect(scores.flatMap(({ failures }) => failures)).toEqual([]);
    expect(Math.min(...during)).toBeGreaterThan(OUTAGE_S);
    for (const each of sent) expect(total(each)).toBeLessThan(MOST_PER_S * OUTAGE_S + 20);
    for (const [index, counts] of halfway.entries()) {
      expect(ended[index]?.residentBytes).toBeLessThan(counts.residentBytes + MEMORY_SLACK_BYTES);
    }
    const primary = before.pods.filter(({ slot }) => slot === 'primary');
    expect(after.pods.filter(({ slot }) => slot === 'primary')).toEqual(primary);
    expect(log.trespasses).toEqual([]);
    expect((await both(async (each) => each.counts())).filter(({ leads }) => leads)).toHaveLength(1);
  }, 600_000);

  test('after a compaction: everything is listed again, once, and an edit that no watch reported is carried out', async () => {
    const { a, b } = controllers;
    await b.kill('SIGTERM');
    while (!(await a.counts()).leads) await pause(50);
    const before = await a.counts();
    proxy.shut();
    await space.patch('primary', { model: { default: 'demo-owl' } });
    await stopApiServer();
    await compactStore();
    await startApiServer();
    proxy.open();
    const startedAt = performance.now();
    await space.until('primary', 'ready with the edit', (slot) => isReady(slot) && slot.status?.model === 'demo-owl', SETTLED_WITHIN_MS);
    const objects = await untilAtRest(space.name, AWAKE, SETTLED_WITHIN_MS);
    const sent = sentBetween(before, await a.counts());
    process.stdout.write(
      `after a compaction: at rest after ${Math.round(performance.now() - startedAt)} ms; ${total(sent)} requests: ${JSON.stringify([...sent])}\n`,
    );
    expect(findFaults(objects, AWAKE)).toEqual([]);
    // Nothing else causes these lists: the periodic list runs every ten minutes.
    for (const kind of ['deployments.apps', 'pods', 'services', 'configmaps']) expect(sent.get(`list ${kind}`)).toBeGreaterThanOrEqual(1);
    expect(await chatText(await a.chat({ model: 'primary' }))).toBe(DEMO_SENTENCES['demo-owl']);
  }, 600_000);
});
