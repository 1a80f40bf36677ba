/** Scales a slot up, down and to zero: through the scale subresource, as HPAs use it, and by leaving the slot idle. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { conditionOf, demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import {
  eventually,
  gatewaysOf,
  metric,
  metricOfAll,
  sessionsOf,
  slotPods,
  startClients,
  startStream,
  type Gateway,
  type SlotPod,
} from '../support/live-cluster/cluster-replicas.ts';
import { watchDeployments } from '../support/live-cluster/deployment-history.ts';
import { exampleAutoscaler, rescales } from '../support/live-cluster/example-autoscaler.ts';
import { serveExternalMetrics } from '../support/live-cluster/external-metrics.ts';
import { watchSlot } from '../support/live-cluster/slot-history.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';

/** Its server publishes the number of requests it processes. */
const PRIMARY = demoSlot('primary', 'demo-clock').replace('args: ["--threads", "1"]', 'args: ["--threads", "1", "--metrics"]');
const NAP = demoSlot('nap', 'demo-fox', '  lifecycle: { idleTimeout: 5s }\n');
const LAZY = demoSlot('lazy', 'demo-fox', '  load: on-demand\n  replicas: 0\n');

describeWithCluster('Scaling a slot', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-scale', values: 'replicas: 2\n' });
    await svc.apply(PRIMARY);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=120s']);
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const readyPods = async (count: number): Promise<readonly SlotPod[]> =>
    eventually(
      `${count} pods are ready`,
      async () => slotPods(svc, 'primary'),
      (pods) => pods.length === count && pods.every(({ ready }) => ready),
      90_000,
    );
  const untilReplicas = async (count: number): Promise<void> => {
    await svc.until('primary', `ready with ${count}`, (slot) => isReady(slot) && slot.status?.readyReplicas === count);
  };
  /** As autoscalers read it. */
  const scaleStatus = async (): Promise<{ readonly replicas: number; readonly selector: string }> => {
    const path = `/apis/inference.svc.dev/v1alpha1/namespaces/${svc.namespace}/slotspecs/primary/scale`;
    const { status }: { readonly status: { readonly replicas: number; readonly selector: string } } = JSON.parse(
      await svc.kubectl(['get', '--raw', path]),
    );
    return status;
  };
  const deployment = async (slot = 'primary'): Promise<string> =>
    svc.kubectl(['get', 'deployments', '--selector', `inference.svc.dev/slot=${slot}`, '--output', 'jsonpath={.items[*].metadata.uid}']);
  const gateways = async (): Promise<readonly Gateway[]> =>
    eventually(
      'there are two gateways, and one is the leader',
      async () => gatewaysOf(svc),
      (seen) => seen.length === 2 && seen[0]?.leads === true,
    );
  const firstGateway = async (): Promise<string> => (await gateways())[0]?.url ?? '';
  const working = async (pods: readonly SlotPod[]): Promise<readonly number[]> =>
    Promise.all(pods.map(({ ip }) => metric(`http://${ip}:8080`, 'llamacpp:requests_processing', '', '/metrics')));
  const boardHas = async (url: string, count: number): Promise<void> => {
    await eventually(
      `the gateway sees ${count}`,
      async () => JSON.parse(await (await fetch(`${url}/api/slots/primary`)).text()).status.replicas,
      (replicas) => replicas?.ready === count && replicas?.present === count,
    );
  };
  const ask = async (url: string, model: string): Promise<number> => {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await answer.text();
    return answer.status;
  };

  test('with kubectl scale adds pods, keeps the present one, and updates the status', async () => {
    const [first] = await readyPods(1);
    const before = await deployment();
    await svc.kubectl(['scale', 'slot/primary', '--replicas=3']);
    const pods = await readyPods(3);
    expect(pods.find(({ uid }) => uid === first?.uid)).toMatchObject({ restarts: 0 });
    expect(await deployment()).toBe(before);
    await untilReplicas(3);
    const { replicas, selector } = await scaleStatus();
    expect(replicas).toBe(3);
    const selected = await svc.kubectl(['get', 'pods', '--selector', selector, '--output', 'jsonpath={.items[*].metadata.uid}']);
    expect(selected.split(' ').toSorted()).toEqual(pods.map(({ uid }) => uid).toSorted());
    const [head = '', row = ''] = (await svc.kubectl(['get', 'slot', 'primary', '--output', 'wide'])).split('\n');
    expect(row.slice(head.indexOf('REPLICAS'), head.indexOf('RESTARTS')).trim()).toBe('3');
  }, 180_000);

  test('follows an HPA from three to one, to three and to one by the requests that its gateways count', async () => {
    const before = await deployment();
    const removeMetrics = await serveExternalMetrics(svc);
    try {
      await svc.kubectl(['apply', '--filename', '-'], await exampleAutoscaler({ namespace: svc.namespace, averageValue: 2 }));
      await readyPods(1);
      await untilReplicas(1);
      const rescaled = await rescales(svc.namespace, 'primary');
      const watched = await watchSlot(svc.namespace, 'primary');
      // Long ones: between two requests of a client, the autoscaler does not see it.
      const busy = startClients(svc.url, 'primary', 6, 700);
      const grown = await readyPods(3);
      await untilReplicas(3);
      expect(await busy.end()).toEqual([]);
      // One request for each of two pods, of which at least one is removed. At the end, both fit into the context of one server.
      const few = startClients(svc.url, 'primary', 2, 1500);
      const [left] = await readyPods(1);
      await untilReplicas(1);
      expect(await few.end()).toEqual([]);
      expect(grown.map(({ uid }) => uid)).toContain(left?.uid);
      expect([left?.restarts, await deployment()]).toEqual([0, before]);
      const seen = await watched.end();
      expect(seen.filter(({ ready }) => !ready)).toEqual([]);
      expect(await metricOfAll(await gateways(), 'svc_drift_total', 'slot="primary"')).toBe(0);
      const wanted = seen.map((moment) => moment.wanted).filter((count, index, all) => count !== all[index - 1]);
      expect([wanted[0], Math.max(...wanted), wanted.at(-1)]).toEqual([1, 3, 1]);
      // The autoscaler can meet a moment between two requests of a client, so it may take more steps than two. Nobody else changes the number.
      await eventually(
        `the autoscaler reports ${wanted.length - 1} changes`,
        async () => (await rescales(svc.namespace, 'primary')) - rescaled,
        (count) => count === wanted.length - 1,
      );
    } finally {
      await svc.kubectl(['delete', 'hpa', 'primary', '--ignore-not-found']);
      await removeMetrics();
      // The next tests begin with three.
      await svc.kubectl(['scale', 'slot/primary', '--replicas=3']);
      await untilReplicas(3);
    }
  }, 300_000);

  test('shows autoscalers the pods of one server at any time during a swap', async () => {
    const { selector: old } = await scaleStatus();
    const watched = await watchSlot(svc.namespace, 'primary');
    await svc.kubectl(['patch', 'slot/primary', '--type=merge', '--patch', '{"spec":{"env":{"SWAPPED":"1"}}}']);
    await svc.kubectl(['wait', '--for=condition=UpToDate', 'slot/primary', '--timeout=120s']);
    await untilReplicas(3);
    const seen = await watched.end();
    const { selector: next, replicas } = await scaleStatus();
    expect(replicas).toBe(3);
    expect(new Set(seen.map(({ selector }) => selector))).toEqual(new Set([old, next]));
    expect(seen.filter(({ present }) => present > 3)).toEqual([]);
    const selected = await svc.kubectl(['get', 'pods', '--selector', next, '--output', 'jsonpath={.items[*].metadata.uid}']);
    expect(selected.split(' ').toSorted()).toEqual((await readyPods(3)).map(({ uid }) => uid).toSorted());
  }, 180_000);

  test('spreads conversations over the pods, each to its own', async () => {
    const pods = await readyPods(3);
    const gateway = await firstGateway();
    await boardHas(gateway, 3);
    const streams = sessionsOf(pods, 6).map((session) => startStream(gateway, 'primary', 1500, session));
    const seen = await eventually(
      'all six are processed',
      async () => working(pods),
      (counts) => counts.reduce((sum, count) => sum + count, 0) === 6,
      20_000,
    );
    expect(seen).toEqual([2, 2, 2]);
    expect(await Promise.all(streams.map(({ failure }) => failure))).toEqual(streams.map(() => undefined));
  }, 120_000);

  test('survives the crash of one server: the others answer, and it is restarted in its pod', async () => {
    const pods = await readyPods(3);
    const before = await deployment();
    const [victim] = pods;
    const clients = startClients(svc.url, 'primary', 3, 150);
    await pause(500);
    const kill = 'kill -TERM 1; sleep 0.2; kill -TERM 1; sleep 5';
    await svc.kubectl(['exec', victim?.name ?? '', '--', 'sh', '-c', kill]).catch(() => undefined);
    const states = new Set<string>();
    await eventually(
      'it is back',
      async () => {
        states.add((await svc.slot('primary'))?.status?.state ?? '');
        return slotPods(svc, 'primary');
      },
      (now) => now.every(({ ready }) => ready) && now.some(({ restarts }) => restarts === 1),
    );
    const failures = await clients.end();
    expect(failures.length).toBeLessThanOrEqual(3);
    expect(failures.filter((failure) => !/upstream|cut after/.test(failure))).toEqual([]);
    expect((await slotPods(svc, 'primary')).map(({ uid }) => uid).toSorted()).toEqual(pods.map(({ uid }) => uid).toSorted());
    expect(await deployment()).toBe(before);
    expect([...states].filter((state) => !['ready', 'serving', 'idle'].includes(state))).toEqual([]);
  }, 180_000);

  test('survives the sudden loss of a pod, which is replaced', async () => {
    const pods = await readyPods(3);
    const before = await deployment();
    const [, victim] = pods;
    const clients = startClients(svc.url, 'primary', 3, 150);
    await pause(500);
    await svc.kubectl(['delete', 'pod', victim?.name ?? '', '--grace-period=0', '--force']);
    const now = await readyPods(3);
    const failures = await clients.end();
    expect(failures.length).toBeLessThanOrEqual(3);
    const stayed = pods.filter((pod) => pod !== victim).map(({ uid }) => uid);
    expect(now.map(({ uid }) => uid)).toEqual(expect.arrayContaining(stayed));
    expect(await deployment()).toBe(before);
    await untilReplicas(3);
  }, 180_000);

  test('down under load loses no request: terminating pods finish their requests', async () => {
    const pods = await readyPods(3);
    const gateway = await firstGateway();
    await boardHas(gateway, 3);
    const clients = startClients(svc.url, 'primary', 3, 150);
    // One for each pod, longer than it takes to remove pods. If one pod has too much to do, another one takes two, which fit into its context.
    const long = sessionsOf(pods, 3).map((session) => startStream(gateway, 'primary', 1600, session));
    await eventually(
      'each pod processes a request',
      async () => working(pods),
      (counts) => counts.every((count) => count > 0),
      20_000,
    );
    await svc.kubectl(['scale', 'slot/primary', '--replicas=1']);
    await readyPods(1);
    expect(await Promise.all(long.map(({ failure }) => failure))).toEqual(long.map(() => undefined));
    expect(await clients.end()).toEqual([]);
    await untilReplicas(1);
    const [left] = await readyPods(1);
    expect(pods.map(({ uid }) => uid)).toContain(left?.uid);
  }, 180_000);

  test('that is idle unloads it, and a request loads it again', async () => {
    await svc.apply(NAP);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/nap', '--timeout=90s']);
    const slot = await svc.until('nap', 'offline', ({ status }) => status?.state === 'offline');
    expect(conditionOf(slot, 'Ready')).toBeUndefined();
    expect(conditionOf(slot, 'Stalled')?.status).toBe('False');
    expect(conditionOf(slot, 'Reconciling')).toMatchObject({ status: 'False' });
    expect(await deployment('nap')).toBe('');
    expect(await ask(svc.url, 'nap')).toBe(200);
    await svc.until('nap', 'offline again', ({ status }) => status?.state === 'offline');
  }, 180_000);

  test.each([
    ['both gateways', ({ length }: readonly Gateway[], index: number) => index % length],
    ['the gateway that is not the leader', () => 1],
  ])(
    'loads it once when many requests wait for it in %s',
    async (_name, pick) => {
      await svc.until('nap', 'offline', ({ status }) => status?.state === 'offline');
      const all = await gateways();
      const applied = async () => metricOfAll(all, 'svc_actions_total', 'action="apply",result="done"');
      const before = await applied();
      const history = await watchDeployments(svc.namespace);
      const known = history.created();
      const statuses = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(all[pick(all, index)]?.url ?? '', 'nap')));
      expect(statuses).toEqual(statuses.map(() => 200));
      await history.stop();
      expect([history.created() - known, await applied(), history.duplicates]).toEqual([1, before + 1, []]);
      expect((await slotPods(svc, 'nap')).map(({ restarts }) => restarts)).toEqual([0]);
    },
    120_000,
  );

  test('that loads on demand from zero answers the requests that waited for it', async () => {
    await svc.apply(LAZY);
    await svc.until('lazy', 'at rest', ({ status }) => status?.state === 'offline');
    const waiting = ask(svc.url, 'lazy');
    await eventually(
      'the request waits',
      async () => metricOfAll(await gateways(), 'svc_parked', 'slot="lazy"'),
      (parked) => parked === 1,
    );
    expect(await deployment('lazy')).toBe('');
    await svc.kubectl(['scale', 'slot/lazy', '--replicas=1']);
    expect(await waiting).toBe(200);
  }, 120_000);

  test('to zero with kubectl rejects requests, and scaling to one loads it again', async () => {
    await svc.kubectl(['scale', 'slot/primary', '--replicas=0']);
    const slot = await svc.until('primary', 'offline', ({ status }) => status?.state === 'offline');
    expect(conditionOf(slot, 'Ready')).toBeUndefined();
    expect(await ask(svc.url, 'primary')).toBe(503);
    await svc.kubectl(['scale', 'slot/primary', '--replicas=1']);
    await untilReplicas(1);
    expect(await startStream(svc.url, 'primary', 20).failure).toBeUndefined();
  }, 120_000);
});
