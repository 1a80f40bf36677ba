/** Tests what users read about a slot that cannot run in a cluster: a reason, what is missing, and what to do. Also tests that doing it helps. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { conditionOf, demoSlot, install, isReady, render, type Installation } from '../support/live-cluster/cluster.ts';
import { breakWeights } from '../support/models/break-weights.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { chatText, pause } from '../support/service.ts';

const NOWHERE = 'localhost/svc-toolbox-lost:v1';
/** The slot for a GPU never starts, but without an image it would not even be tried. */
const values = (image: string): string => `replicas: 1\ntoolboxes: { gguf: { cpu: { image: "${image}" }, cuda: { image: "${image}" } } }\n`;

interface Problem {
  readonly reason: string;
  /** Parts of the message. */
  readonly texts: readonly (string | RegExp)[];
  /** An edit that solves the problem. */
  readonly fix: object;
}

/** A volume for a directory that does not exist on the node. */
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
spec: { storageClassName: svc-trouble, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;

const STORE = '/var/tmp/svc-trouble-models';
const copyPod = (command: string): string => `apiVersion: v1
kind: Pod
metadata: { name: copy }
spec:
  restartPolicy: Never
  containers:
    - name: copy
      image: localhost/svc-toolbox-gguf-cpu:v1
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "${command}"]
      securityContext: { runAsUser: 0 }
      volumeMounts: [{ name: store, mountPath: /store }, { name: files, mountPath: /files }]
  volumes:
    - { name: store, hostPath: { path: ${STORE}, type: DirectoryOrCreate } }
    - { name: files, configMap: { name: nonsense } }
`;

const WAITING: Readonly<Record<string, Problem & { readonly spec: string }>> = {
  selector: {
    spec: '  nodeSelector: { disk: none-has-it }\n',
    reason: 'Unschedulable',
    texts: ['no node has the label "disk=none-has-it"', 'kubectl label node', '"nodeSelector"'],
    fix: { nodeSelector: null },
  },
  memory: {
    spec: '  resources: { memory: 900Gi }\n',
    reason: 'Unschedulable',
    texts: ['not enough free memory (900Gi requested)', '"resources.memory"'],
    fix: { resources: null },
  },
  gpu: {
    spec: '  backend: cuda\n',
    reason: 'Unschedulable',
    texts: ['no free "nvidia.com/gpu" (1 requested)', 'device plugin', '"backend"'],
    fix: { backend: 'cpu' },
  },
  model: {
    spec: '',
    reason: 'ModelMissing',
    texts: ['The file "/models/mine/lost.gguf" does not exist', '"models.claim"'],
    fix: { model: { default: 'demo-fox' } },
  },
  directory: {
    spec: '  storage: { hostPath: /etc/hostname }\n',
    reason: 'FailedMount',
    texts: ['cannot mount "/etc/hostname": it is not a directory', '"storage.hostPath"'],
    fix: { storage: null },
  },
  volume: {
    spec: '  storage: { claimName: lost }\n',
    reason: 'FailedMount',
    texts: ['cannot mount the volume "svc-trouble-lost" of the claim "lost"', 'path "/nowhere/models" does not exist'],
    fix: { storage: null },
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
  /** Expects the same texts wherever users may look. */
  const expectEverywhere = async (slot: string, texts: readonly (string | RegExp)[]): Promise<void> => {
    const places = await Promise.all([
      run('explain', slot),
      run('timeline', slot),
      svc.kubectl(['describe', 'slot', slot]),
      svc.kubectl(['get', 'slot', slot, '--output', 'wide']),
      svc.kubectl(['get', 'events', '--field-selector', `involvedObject.name=${slot},type=Warning`]),
    ]);
    for (const place of places) for (const text of texts) expect(place).toMatch(text instanceof RegExp ? text : escaped(text));
  };

  test('because its image is not available names the image, and runs once the chart names another one', async () => {
    await svc.apply(demoSlot('image', 'demo-fox'));
    expect(await becomes('image', 'ImagePullBackOff')).toContain(`cannot pull the image "${NOWHERE}"`);
    await expectEverywhere('image', [NOWHERE]);
    const chart = await render(svc.namespace, `${values('localhost/svc-toolbox-gguf-cpu:v1')}podDisruptionBudget: { enabled: false }\n`);
    await svc.kubectl(['apply', '--filename', '-'], chart);
    // A kubelet syncs ConfigMaps once a minute, and when a pod changes.
    await svc.kubectl(['annotate', 'pods', '--selector', 'app.kubernetes.io/component=gateway', 'touched=now']);
    await svc.until('image', 'ready', isReady, 150_000);
    await drop('image');
  }, 240_000);

  describe('because of its node, its model or its volume', () => {
    beforeAll(async () => {
      // Left over from an interrupted run.
      await svc.kubectl(['delete', 'pv', 'svc-trouble-lost', '--ignore-not-found']);
      await svc.kubectl(['apply', '--filename', '-'], VOLUME);
      const slots = Object.entries(WAITING).map(([name, { spec }]) => {
        const text = demoSlot(name, name === 'model' ? 'mine/lost.gguf' : 'demo-fox', spec);
        return spec.includes('backend') ? text.replace('  backend: cpu\n', '') : text;
      });
      await svc.apply(slots.join(''));
    });

    test.each(Object.entries(WAITING))(
      'reports what is missing and what to do: %s',
      async (slot, { reason, texts }) => {
        // A node may first report that it does not know the claim of a new pod yet.
        const isExplained = (message = '') =>
          texts.every((text) => new RegExp(text instanceof RegExp ? text : escaped(text)).test(message));
        await svc.until(
          slot,
          `${reason} explained`,
          (each) => {
            const ready = conditionOf(each, 'Ready');
            return ready?.reason === reason && isExplained(ready.message);
          },
          200_000,
        );
        await expectEverywhere(slot, texts);
        const seen = await svc.slot(slot);
        // The problem may resolve itself, so nothing has failed for good.
        expect(conditionOf(seen, 'Reconciling')).toMatchObject({ status: 'True', reason });
        expect(conditionOf(seen, 'Stalled')?.status).toBe('False');
      },
      260_000,
    );

    test.each(Object.entries(WAITING))(
      'runs after an edit: %s',
      async (slot, { fix }) => {
        await patch(slot, fix);
        const seen = await svc.until(slot, 'ready', isReady);
        expect(conditionOf(seen, 'Reconciling')?.status).toBe('False');
        await drop(slot);
      },
      150_000,
    );
  });

  test('because a quota of its namespace is used up names the quota, and runs when the quota is gone', async () => {
    const listed: { readonly items: readonly { readonly metadata: object }[] } = JSON.parse(
      await svc.kubectl(['get', 'pods', '--output', 'json']),
    );
    // Pods of the slots before may still be terminating.
    const pods = listed.items.filter(({ metadata }) => !('deletionTimestamp' in metadata)).length;
    await svc.kubectl(['create', 'quota', 'tight', `--hard=pods=${pods}`]);
    await svc.apply(demoSlot('quota', 'demo-fox'));
    const texts = ['The quota "tight"', `limited: pods=${pods}`];
    const message = await becomes('quota', 'QuotaExceeded');
    for (const text of texts) expect(message).toMatch(text);
    await expectEverywhere('quota', texts);
    await svc.kubectl(['delete', 'quota', 'tight']);
    await svc.until('quota', 'ready', isReady, 150_000);
    await drop('quota');
  }, 300_000);

  test('with one of two replicas answers with that one, and reports why the other is missing', async () => {
    const allocatable = await svc.kubectl(['get', 'nodes', '--output', 'jsonpath={.items[0].status.allocatable.memory}']);
    const [, kib = ''] = /^(\d+)Ki$/.exec(allocatable) ?? [];
    const mostOfIt = `${Math.floor((Number(kib) * 0.55) / 1024)}Mi`;
    await svc.apply(demoSlot('wide', 'demo-fox', `  replicas: 2\n  resources: { memory: ${mostOfIt} }\n`));
    const messageOf = (seen: Parameters<typeof isReady>[0]) => conditionOf(seen, 'Ready')?.message ?? '';
    const texts = ['1 of 2 replicas answer', `not enough free memory (${mostOfIt} requested)`];
    await svc.until('wide', 'one of two', (seen) => isReady(seen) && texts.every((text) => messageOf(seen).includes(text)), 120_000);
    expect(conditionOf(await svc.slot('wide'), 'Reconciling')).toMatchObject({ status: 'True', reason: 'ReplicasNotReady' });
    expect((await svc.chat({ model: 'wide' })).status).toBe(200);
    for (const place of [await run('explain', 'wide'), await svc.kubectl(['describe', 'slot', 'wide'])])
      for (const text of texts) expect(place).toMatch(escaped(text));
    await patch('wide', { replicas: 1 });
    await svc.until('wide', 'complete', (each) => conditionOf(each, 'Reconciling')?.status === 'False', 120_000);
    await drop('wide');
  }, 300_000);

  test('because its new model answers nonsense says so, while the old one keeps serving', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'svc-nonsense-'));
    const file = path.join(directory, 'chat.gguf');
    await writeFile(file, breakWeights(encodeDemoModel('demo-fox'), Number.NaN));
    await svc.kubectl(['create', 'configmap', 'nonsense', `--from-file=chat.gguf=${file}`]);
    await rm(directory, { recursive: true });
    const inStore = async (command: string): Promise<void> => {
      await svc.kubectl(['apply', '--filename', '-'], copyPod(command));
      const phase = async () => svc.kubectl(['get', 'pod', 'copy', '--output', 'jsonpath={.status.phase}']);
      await eventually('the files are copied', async () => (await phase()) === 'Succeeded', 60_000);
      await svc.kubectl(['delete', 'pod', 'copy']);
    };
    await inStore('mkdir -p /store/broken && cp -L /files/chat.gguf /store/broken/ && chmod -R a+rwX /store');
    const options = `  storage: { hostPath: ${STORE} }\n  lifecycle: { swap: blue-green }\n`;
    await svc.apply(demoSlot('nonsense', 'demo-fox', options));
    await svc.until('nonsense', 'ready', isReady, 150_000);
    await patch('nonsense', { model: { default: 'broken/chat.gguf' } });
    const texts = ['The model answers nonsense', 'probability that is not a number'];
    const message = await becomes('nonsense', 'ModelAnswersNonsense', 'Stalled');
    for (const text of texts) expect(message).toMatch(text);
    await expectEverywhere('nonsense', ['The model answers nonsense']);
    expect(conditionOf(await svc.slot('nonsense'), 'Ready')).toMatchObject({ status: 'True', reason: 'PreviousServes' });
    const answer = await svc.chat({ model: 'nonsense' });
    expect([answer.status, await chatText(answer)]).toEqual([200, DEMO_SENTENCES['demo-fox']]);
    await patch('nonsense', { model: { default: 'demo-owl' } });
    await svc.until('nonsense', 'ready', (each) => isReady(each) && conditionOf(each, 'UpToDate')?.status === 'True', 150_000);
    await drop('nonsense');
    await inStore('rm -rf /store/broken /store/demo');
  }, 400_000);

  describe('because it crashes', () => {
    beforeAll(async () => {
      // The cache for such a long context exceeds the memory limit of the pod.
      const hungry = demoSlot('hungry', 'demo-fox', '  resources: { memory: 96Mi }\n').replace(
        'demo-fox\n',
        'demo-fox\n    context: 1000000\n',
      );
      await svc.apply(hungry + demoSlot('refusing', 'demo-fox').replace('["--threads", "1"]', '["--no-such-flag"]'));
    });

    test.each([
      [
        'hungry',
        'CrashLoop',
        ['out of memory', '"resources.memory"', '96Mi', 'Failed 5 times'],
        { resources: null, model: { context: null } },
      ],
      ['refusing', 'StartFailed', ['refuses its arguments', 'invalid argument: --no-such-flag'], { model: { args: ['--threads', '1'] } }],
    ])(
      'waits longer each time, then asks the user to act: %s',
      async (slot, reason, texts, fix) => {
        const message = await becomes(slot, reason, 'Stalled', 240_000);
        for (const text of texts) expect(message).toMatch(text);
        await expectEverywhere(slot, texts);
        expect(await run('explain', slot)).toContain('its last log lines');
        // What is removed may still be seen as a pod that starts.
        const seen = await svc.until(slot, 'down', ({ status }) => ['offline', 'unloading'].includes(status?.state ?? ''));
        expect(seen.status?.restarts).toBe(4);
        expect(conditionOf(seen, 'Reconciling')?.status).toBe(seen?.status?.state === 'offline' ? 'False' : 'True');
        const answer = await svc.chat({ model: slot });
        const { error }: { error: { code: string; message: string } } = JSON.parse(await answer.text());
        expect([answer.status, error.code]).toEqual([503, 'slot.stalled']);
        expect(error.message).toMatch(texts[0] ?? '');
        await pause(1000);
        await patch(slot, fix);
        await svc.until(slot, 'ready', isReady, 150_000);
        await drop(slot);
      },
      420_000,
    );
  });
});

const escaped = (text: string): RegExp => new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
