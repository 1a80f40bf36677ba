/**
 * What operators and their tools do to a slot: they edit it and wait, scale its Deployment behind its back, and drain its node. SVC_TEST_ROUNDS is the number of
 * models that are changed one after the other (default: 3).
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { conditionOf, demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { eventually, gatewaysOf, slotPods, startClients, startStream, type SlotPod } from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { chatText, pause } from '../support/service.ts';
import { svcctl } from '../cli/run-svcctl.ts';

const ROUNDS = Number(process.env['SVC_TEST_ROUNDS'] ?? 3);
const OF_SLOT = 'inference.svc.dev/slot=primary';
const MODELS = ['demo-owl', 'demo-fox'] as const;
/** The same budget as that of the service, which this older API server does not know as policy/v1. */
const BUDGET = `apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: { name: svc-slot-primary }
spec:
  maxUnavailable: 1
  selector: { matchLabels: { inference.svc.dev/slot: primary, app.kubernetes.io/managed-by: svc } }
`;

describeWithCluster('A slot in the hands of operators', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-operators', values: 'replicas: 2\n' });
    await svc.apply(demoSlot('primary', 'demo-fox'));
    await upToDate();
  }, 240_000);
  afterAll(async () => {
    await uncordon();
    await svc?.dispose();
  }, 240_000);

  const upToDate = async (): Promise<unknown> => svc.kubectl(['wait', '--for=condition=UpToDate', 'slot/primary', '--timeout=120s']);
  const patch = async (spec: object): Promise<unknown> =>
    svc.kubectl(['patch', 'slot/primary', '--type=merge', '--patch', JSON.stringify({ spec })]);
  const ask = async (url: string): Promise<string> => {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    return answer.status === 200 ? chatText(answer) : `${answer.status} ${await answer.text()}`;
  };
  const events = async (): Promise<string> =>
    svc.kubectl([
      'get',
      'events',
      '--field-selector',
      'involvedObject.name=primary,type=Warning',
      '--output',
      'jsonpath={.items[*].message}',
    ]);
  /** Its name depends on the swaps before. */
  const deployment = async (): Promise<string> =>
    (await svc.kubectl(['get', 'deployments', '--selector', OF_SLOT, '--output', 'name'])).trim();
  /** Writes to the Deployment as another program would. */
  const scaleAs = async (manager: string, replicas: number): Promise<unknown> =>
    svc.kubectl([
      'patch',
      await deployment(),
      `--field-manager=${manager}`,
      '--type=merge',
      '--patch',
      JSON.stringify({ spec: { replicas } }),
    ]);
  const wanted = async (): Promise<string> => svc.kubectl(['get', await deployment(), '--output', 'jsonpath={.spec.replicas}']);
  const readyPods = async (count: number, withinMs = 90_000): Promise<readonly SlotPod[]> =>
    eventually(
      `${count} pods are ready`,
      async () => slotPods(svc, 'primary'),
      (pods) => pods.length === count && pods.every(({ ready }) => ready),
      withinMs,
    );
  const node = async (): Promise<string> => svc.kubectl(['get', 'nodes', '--output', 'jsonpath={.items[0].metadata.name}']);
  const uncordon = async (): Promise<unknown> => svc?.kubectl(['uncordon', await node()]);
  const evict = async (pod: string): Promise<unknown> => {
    const eviction = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: pod, namespace: svc.namespace } };
    return svc.kubectl(
      ['create', '--raw', `/api/v1/namespaces/${svc.namespace}/pods/${pod}/eviction`, '--filename', '-'],
      JSON.stringify(eviction),
    );
  };

  test(
    `answers with the new model as soon as "kubectl wait" or "svcctl wait" returns, ${ROUNDS} times in a row, at each gateway`,
    async () => {
      const gateways = (await gatewaysOf(svc)).map(({ url }) => url);
      expect(gateways).toHaveLength(2);
      const wrong: string[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const model = MODELS[round % 2] ?? 'demo-owl';
        await patch({ model: { default: model } });
        // Without a pause: right after the edit, the condition of the generation before is still true.
        if (round % 2 === 0) await upToDate();
        else expect(await svcctl(['wait', 'slot/primary', '--timeout', '2m', '-n', svc.namespace])).toMatchObject({ code: 0 });
        const answers = await Promise.all([svc.url, ...gateways].map(ask));
        wrong.push(...answers.filter((answer) => answer !== DEMO_SENTENCES[model]).map((answer) => `round ${round}: ${answer}`));
      }
      expect(wrong).toEqual([]);
    },
    60_000 + ROUNDS * 40_000,
  );

  test('has its new timeouts in its pods once it is up to date', async () => {
    await patch({ model: { default: 'demo-owl' }, lifecycle: { startTimeout: '7m', drainTimeout: '77s' } });
    await upToDate();
    // A pod that has ended may be listed for another half minute.
    const [pod] = await readyPods(1);
    const path = 'jsonpath={.spec.terminationGracePeriodSeconds} {.spec.containers[0].startupProbe.failureThreshold}';
    const times = await svc.kubectl(['get', 'pod', pod?.name ?? '', '--output', path]);
    expect(times).toBe(`${77 + 12} ${7 * 60 + 15}`);
  }, 180_000);

  test('is scaled back after an autoscaler scaled its Deployment up, and says who did it', async () => {
    await svc.until('primary', 'ready', isReady);
    await scaleAs('hpa-of-somebody', 5);
    await eventually('it is scaled back', wanted, (replicas) => replicas === '1');
    await readyPods(1);
    expect(await events()).toContain('replicas 5 instead of 1 (by "hpa-of-somebody")');
    await upToDate();
    expect(await ask(svc.url)).toBe(DEMO_SENTENCES['demo-owl']);
  }, 120_000);

  test('is scaled back as often as another program scales its Deployment to zero, later and later, and no request is lost', async () => {
    // An edit begins a new series of repairs.
    await patch({ model: { default: 'demo-fox' }, priority: 1 });
    await upToDate();
    const repairedAt: number[] = [];
    const messages: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      await scaleAs('kube-downscaler', 0);
      const waiting = ask(svc.url);
      await eventually(
        'it is scaled back',
        async () => {
          messages.push(conditionOf(await svc.slot('primary'), 'DriftDetected')?.message ?? '');
          return wanted();
        },
        (replicas) => replicas === '1',
      );
      repairedAt.push(performance.now());
      expect(await waiting).toBe(DEMO_SENTENCES['demo-fox']);
      const slot = await svc.until(
        'primary',
        'repaired',
        (seen) => conditionOf(seen, 'DriftDetected')?.status === 'False' && isReady(seen),
      );
      expect(conditionOf(slot, 'Stalled')?.status).toBe('False');
    }
    const pauses = repairedAt.slice(1).map((at, index) => (at - (repairedAt[index] ?? at)) / 1000);
    process.stdout.write(`scaled to zero six times: repaired after pauses of ${pauses.map((each) => each.toFixed(1)).join(', ')} s\n`);
    // The fifth and the sixth repair wait 8 and 16 s after the one before.
    expect(pauses.at(-2)).toBeGreaterThan(7);
    expect(pauses.at(-1)).toBeGreaterThan(14);
    expect(messages.join('\n')).toContain('replicas 0 instead of 1 (by "kube-downscaler")');
    expect(messages.join('\n')).toContain('repaired 5 times');
    expect(await events()).toContain('(by "kube-downscaler")');
  }, 300_000);

  test('with two replicas loses no request while its pods are evicted one after the other', async () => {
    await patch({ model: { default: 'demo-clock' }, replicas: 2, lifecycle: { drainTimeout: '60s' } });
    await upToDate();
    const before = await readyPods(2);
    await svc.kubectl(['apply', '--filename', '-'], BUDGET);
    await eventually(
      'the budget is known',
      async () => svc.kubectl(['get', 'pdb', 'svc-slot-primary', '--output', 'jsonpath={.status.disruptionsAllowed}']),
      (allowed) => allowed === '1',
    );
    const clients = startClients(svc.url, 'primary', 2, 100);
    const long = Array.from({ length: 4 }, () => startStream(svc.url, 'primary', 1200));
    await pause(1500);
    for (const { name } of before) {
      // Refused with 429 until the replacement of the last one is ready.
      await eventually(
        `${name} is evicted`,
        async () => evict(name).then(() => 'evicted', String),
        (outcome) => outcome === 'evicted' || outcome.includes('not found'),
        90_000,
      );
      expect((await slotPods(svc, 'primary')).some(({ ready }) => ready)).toBe(true);
    }
    const after = await readyPods(2);
    expect(after.map(({ uid }) => uid).filter((uid) => before.some((pod) => pod.uid === uid))).toEqual([]);
    expect(await Promise.all(long.map(({ failure }) => failure))).toEqual(long.map(() => undefined));
    expect(await clients.end()).toEqual([]);
    await svc.kubectl(['delete', 'pdb', 'svc-slot-primary']);
  }, 300_000);

  test('finishes its streams when its only pod is evicted from a drained node, and answers what came meanwhile on the next one', async () => {
    await patch({ replicas: 1 });
    await readyPods(1);
    await upToDate();
    const stream = startStream(svc.url, 'primary', 1200);
    await pause(1000);
    try {
      await svc.kubectl([
        'drain',
        await node(),
        `--pod-selector=${OF_SLOT}`,
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--timeout=120s',
      ]);
      expect(await stream.failure).toBeUndefined();
      await svc.until('primary', 'Unschedulable', (seen) => conditionOf(seen, 'Ready')?.reason === 'Unschedulable');
    } finally {
      // Parked until a node has room again.
      const parked = startStream(svc.url, 'primary', 20);
      await pause(1000);
      await uncordon();
      expect(await parked.failure).toBeUndefined();
    }
    await upToDate();
  }, 300_000);
});
