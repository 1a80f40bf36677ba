/** What keeps a slot from running in a cluster, as a person reads it: a reason, what is missing, and what to do; and that doing it helps. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { conditionOf, demoSlot, install, isReady, render, type Installation } from '../support/live-cluster/cluster.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';

const NOWHERE = 'localhost/svc-toolbox-lost:v1';
const values = (image: string): string => `replicas: 1\ntoolboxes: { gguf: { cpu: { image: "${image}" } } }\n`;

interface Trouble {
  readonly reason: string;
  /** What the message says. */
  readonly says: readonly (string | RegExp)[];
  /** An edit that inPlace it. */
  readonly mend: object;
}

/** A directory of the node that is not there, as a volume. */
const VOLUME = `apiVersion: v1
kind: PersistentVolume
metadata: { name: svc-trouble-lost }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteOnce]
  storageClassName: svc-trouble
  persistentVolumeReclaimPolicy: Delete
  local: { path: /nowhere/models }
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: kubernetes.io/hostname, operator: Exists }] }] } }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: lost }
spec: { storageClassName: svc-waitingReason, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;

const WAITING: Readonly<Record<string, Trouble & { readonly spec: string }>> = {
  selector: {
    spec: '  nodeSelector: { disk: none-has-it }\n',
    reason: 'Unschedulable',
    says: ['no node has the label "disk=none-has-it"', 'kubectl label node', '"nodeSelector"'],
    mend: { nodeSelector: null },
  },
  memory: {
    spec: '  resources: { memory: 900Gi }\n',
    reason: 'Unschedulable',
    says: ['too little free memory (900Gi asked for)', '"resources.memory"'],
    mend: { resources: null },
  },
  gpu: {
    spec: '  backend: cuda\n',
    reason: 'Unschedulable',
    says: ['no free "nvidia.com/gpu" (1 asked for)', 'device plugin', '"backend"'],
    mend: { backend: 'cpu' },
  },
  model: {
    spec: '',
    reason: 'ModelPullFailed',
    says: ['Put the file "/models/mine/lost.gguf"', '"models.claim"'],
    mend: { model: { default: 'demo-fox' } },
  },
  directory: {
    spec: '  storage: { hostPath: /etc/hostname }\n',
    reason: 'FailedMount',
    says: ['cannot mount "/etc/hostname": it is not a directory', '"storage.hostPath"'],
    mend: { storage: null },
  },
  volume: {
    spec: '  storage: { claimName: lost }\n',
    reason: 'FailedMount',
    says: ['cannot mount the volume "svc-trouble-lost" of the claim "lost"', 'path "/nowhere/models" does not exist'],
    mend: { storage: null },
  },
};

describeWithCluster('A slot that cannot run', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-trouble', values: values(NOWHERE) });
  }, 240_000);
  afterAll(async () => {
    await svc?.dispose();
    await svc?.kubectl(['delete', 'pv', 'svc-trouble-lost', '--ignore-not-found']);
  }, 240_000);

  const patch = async (slot: string, spec: object): Promise<string> =>
    svc.kubectl(['patch', `slot/${slot}`, '--type=merge', '--patch', JSON.stringify({ spec })]);
  const drop = async (slot: string): Promise<string> => svc.kubectl(['delete', 'slot', slot]);
  const run = async (...args: readonly string[]): Promise<string> => (await svcctl([...args, '--namespace', svc.namespace])).out;
  const becomes = async (slot: string, reason: string, type = 'Ready', withinMs = 120_000): Promise<string> => {
    const seen = await svc.until(slot, reason, (each) => conditionOf(each, type)?.reason === reason, withinMs);
    return conditionOf(seen, type)?.message ?? '';
  };
  /** The same words wherever a person may look. */
  const isToldEverywhere = async (slot: string, says: readonly (string | RegExp)[]): Promise<void> => {
    const places = await Promise.all([
      run('explain', slot),
      run('timeline', slot),
      svc.kubectl(['describe', 'slot', slot]),
      svc.kubectl(['get', 'slot', slot, '--output', 'wide']),
      svc.kubectl(['get', 'events', '--field-selector', `involvedObject.name=${slot},type=Warning`]),
    ]);
    for (const place of places) for (const words of says) expect(place).toMatch(words instanceof RegExp ? words : escaped(words));
  };

  test('as its image is not to be had says where it was looked for, and runs once the chart names another', async () => {
    await svc.apply(demoSlot('image', 'demo-fox'));
    expect(await becomes('image', 'ImagePullBackOff')).toContain(`cannot pull the image "${NOWHERE}"`);
    await isToldEverywhere('image', [NOWHERE]);
    const chart = await render(svc.namespace, `${values('localhost/svc-toolbox-gguf-cpu:v1')}podDisruptionBudget: { enabled: false }\n`);
    await svc.kubectl(['apply', '--filename', '-'], chart);
    // A kubelet looks at ConfigMaps once a minute, and when a pod is touched.
    await svc.kubectl(['annotate', 'pods', '--selector', 'app.kubernetes.io/component=gateway', 'touched=now']);
    await svc.until('image', 'ready', isReady, 150_000);
    await drop('image');
  }, 240_000);

  describe('because of its place, its model or its volume', () => {
    beforeAll(async () => {
      // Of an earlier run that was cut short.
      await svc.kubectl(['delete', 'pv', 'svc-trouble-lost', '--ignore-not-found']);
      await svc.kubectl(['apply', '--filename', '-'], VOLUME);
      const slots = Object.entries(WAITING).map(([name, { spec }]) => {
        const text = demoSlot(name, name === 'model' ? 'mine/lost.gguf' : 'demo-fox', spec);
        return spec.includes('backend') ? text.replace('  backend: cpu\n', '') : text;
      });
      await svc.apply(slots.join(''));
    });

    test.each(Object.entries(WAITING))(
      'says what is missing and what to do: %s',
      async (slot, { reason, says }) => {
        const message = await becomes(slot, reason);
        for (const words of says) expect(message).toMatch(words);
        await isToldEverywhere(slot, says);
        const seen = await svc.slot(slot);
        // It may pass by itself: nothing has failed for good.
        expect(conditionOf(seen, 'Reconciling')).toMatchObject({ status: 'True', reason });
        expect(conditionOf(seen, 'Stalled')?.status).toBe('False');
      },
      150_000,
    );

    test.each(Object.entries(WAITING))(
      'runs after an edit: %s',
      async (slot, { mend }) => {
        await patch(slot, mend);
        const seen = await svc.until(slot, 'ready', isReady);
        expect(conditionOf(seen, 'Reconciling')?.status).toBe('False');
        await drop(slot);
      },
      150_000,
    );
  });

  test('as a quota of its namespace is used up names the quota, and runs when it is raised', async () => {
    const listed: { readonly items: readonly { readonly metadata: object }[] } = JSON.parse(
      await svc.kubectl(['get', 'pods', '--output', 'json']),
    );
    // Those of the slots before may still be going.
    const pods = listed.items.filter(({ metadata }) => !('deletionTimestamp' in metadata)).length;
    await svc.kubectl(['create', 'quota', 'tight', `--hard=pods=${pods}`]);
    await svc.apply(demoSlot('quota', 'demo-fox'));
    const says = ['The quota "tight"', `used of pods=${pods}`];
    const message = await becomes('quota', 'QuotaExceeded');
    for (const words of says) expect(message).toMatch(words);
    await isToldEverywhere('quota', says);
    await svc.kubectl(['delete', 'quota', 'tight']);
    await svc.until('quota', 'ready', isReady, 150_000);
    await drop('quota');
  }, 300_000);

  test('of whose replicas one finds no room answers with the other, and says so', async () => {
    const allocatable = await svc.kubectl(['get', 'nodes', '--output', 'jsonpath={.items[0].status.allocatable.memory}']);
    const [, kib = ''] = /^(\d+)Ki$/.exec(allocatable) ?? [];
    const mostOfIt = `${Math.floor((Number(kib) * 0.55) / 1024)}Mi`;
    await svc.apply(demoSlot('wide', 'demo-fox', `  replicas: 2\n  resources: { memory: ${mostOfIt} }\n`));
    const messageOf = (seen: Parameters<typeof isReady>[0]) => conditionOf(seen, 'Ready')?.message ?? '';
    const says = ['1 of 2 replicas answer', `too little free memory (${mostOfIt} asked for)`];
    await svc.until('wide', 'one of two', (seen) => isReady(seen) && says.every((words) => messageOf(seen).includes(words)), 120_000);
    expect(conditionOf(await svc.slot('wide'), 'Reconciling')).toMatchObject({ status: 'True', reason: 'ReplicasNotReady' });
    expect((await svc.chat({ model: 'wide' })).status).toBe(200);
    for (const place of [await run('explain', 'wide'), await svc.kubectl(['describe', 'slot', 'wide'])])
      for (const words of says) expect(place).toMatch(escaped(words));
    await patch('wide', { replicas: 1 });
    await svc.until('wide', 'all there', (each) => conditionOf(each, 'Reconciling')?.status === 'False', 120_000);
    await drop('wide');
  }, 300_000);

  describe('because it crashes', () => {
    beforeAll(async () => {
      // The cache for so long a context is more than the pod may have.
      const hungry = demoSlot('hungry', 'demo-fox', '  resources: { memory: 96Mi }\n').replace(
        'demo-fox\n',
        'demo-fox\n    context: 1000000\n',
      );
      await svc.apply(hungry + demoSlot('refusing', 'demo-fox').replace('["--threads", "1"]', '["--no-such-flag"]'));
    });

    test.each([
      ['hungry', ['it ran out of memory', '"resources.memory"', '96Mi'], { resources: null, model: { context: null } }],
      ['refusing', ['exit code 1', 'invalid argument: --no-such-flag'], { model: { args: ['--threads', '1'] } }],
    ])(
      'waits longer each time, then asks for a person: %s',
      async (slot, says, mend) => {
        const message = await becomes(slot, 'CrashLoop', 'Stalled', 240_000);
        for (const words of [...says, 'failed 5 times']) expect(message).toMatch(words);
        await isToldEverywhere(slot, says);
        expect(await run('explain', slot)).toContain('its last log lines');
        const seen = await svc.slot(slot);
        expect(seen?.status).toMatchObject({ state: expect.stringMatching(/offline|unloading/), restarts: 4 });
        expect(conditionOf(seen, 'Reconciling')?.status).toBe(seen?.status?.state === 'offline' ? 'False' : 'True');
        const answer = await svc.chat({ model: slot });
        const { error }: { error: { code: string; message: string } } = JSON.parse(await answer.text());
        expect([answer.status, error.code]).toEqual([503, 'slot.stalled']);
        expect(error.message).toMatch(says[0] ?? '');
        await pause(1000);
        await patch(slot, mend);
        await svc.until(slot, 'ready', isReady, 150_000);
        await drop(slot);
      },
      420_000,
    );
  });
});

const escaped = (text: string): RegExp => new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
