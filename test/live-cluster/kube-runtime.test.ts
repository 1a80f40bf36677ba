/** Tests what only a real cluster shows: pods that take time to terminate, wait for a node, or fail to fetch a model. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import type { ObservedWorkload, Workload } from '../../src/reconciler/ports.ts';
import type { WorkloadId } from '../../src/schema/words/names.ts';
import { RICH_OVERLAY } from '../schema/rich-overlay.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { WORKLOAD_IMAGE } from '../support/require/require-podman.ts';
import { eventually } from '../support/runtimes/runtime-world.ts';
import { createKubeWorld, type KubeWorld } from './kube-world.ts';

jest.setTimeout(180_000);

const SIGNAL = new AbortController().signal;
let world: KubeWorld;
afterEach(async () => await world.dispose());

async function apply(workload: Workload): Promise<WorkloadId> {
  const applied = await world.runtime.apply(workload, SIGNAL);
  if (!applied.ok) throw new Error(`${applied.failure.reason}: ${applied.failure.message}`);
  return applied.value;
}

/** Waits for a workload that fulfils the condition. */
async function seen(what: string, holds: (workload: ObservedWorkload) => boolean): Promise<ObservedWorkload> {
  return await eventually(
    what,
    async () => {
      const facts = await world.runtime.observe([], SIGNAL);
      return facts.ok ? facts.value.workloads.find(holds) : undefined;
    },
    90_000,
  );
}

const ready = async (): Promise<ObservedWorkload> => await seen('an endpoint', ({ endpoints }) => endpoints.length > 0);
const left = async (kinds: string): Promise<string> =>
  await world.kubectl('get', kinds, '--selector', 'app.kubernetes.io/managed-by=svc', '--output', 'name');

describeWithCluster('The kube runtime on a real cluster', () => {
  test('lets a request in flight finish on a pod that is stopped', async () => {
    world = await createKubeWorld('drain');
    const plain = world.workload({ port: 8080 });
    const id = await apply({ ...plain, cluster: { ...plain.cluster, drainTimeoutMs: 60_000 } });
    const [endpoint] = (await ready()).endpoints;
    const socket = connect({ host: endpoint?.host ?? '', port: endpoint?.port ?? 0 });
    const answer = text(socket);
    socket.write('GET / HTTP/1.1\r\n');
    const stopping = world.runtime.stop(id, { graceMs: 10_000 }, SIGNAL);
    await seen('it stops', (each) => each.id === id && each.phase === 'stopping' && each.endpoints.length === 0);
    // Longer than the pod waits for the gateways to notice, and longer than its server takes to exit.
    await sleep(6000);
    socket.write('\r\n');
    expect(await answer).toContain('hello');
    expect(await stopping).toEqual({ ok: true, value: undefined });
    expect(await left('deployments,configmaps')).toBe('');
  });

  test('scales in place, and keeps running when one pod is lost', async () => {
    world = await createKubeWorld('scale');
    const plain = world.workload({ port: 8080 });
    const id = await apply(plain);
    const first = await ready();
    const wanted = { ...plain, cluster: { ...plain.cluster, replicas: 2 } };
    expect(world.runtime.traits.inPlace?.isOutdated(wanted, first)).toBe(true);
    expect(await apply(wanted)).toBe(id);
    const both = await seen('two endpoints', ({ endpoints }) => endpoints.length === 2);
    expect(both).toMatchObject({ id, phase: 'running', replicas: { present: 2, ready: 2 } });
    expect(both.endpoints).toEqual(expect.arrayContaining([...first.endpoints]));
    expect(world.runtime.traits.inPlace?.isOutdated(wanted, both)).toBe(false);
    expect(world.runtime.traits.inPlace?.findAltered(wanted, both)).toEqual([]);
    await world.exit(first, 1);
    const one = await seen('one endpoint', ({ endpoints }) => endpoints.length === 1);
    expect(one).toMatchObject({ id, phase: 'running' });
    await seen('two endpoints again', ({ endpoints }) => endpoints.length === 2);
  });

  test('reverts edits by kubectl, but keeps labels and variables of other clients', async () => {
    world = await createKubeWorld('drift');
    const workload = world.workload({ port: 8080 });
    const id = await apply(workload);
    await ready();
    const deployment = `deployment/${workload.name}`;
    await world.kubectl('label', deployment, 'team=red');
    await world.kubectl('set', 'env', deployment, 'OTHER=theirs');
    await world.kubectl('set', 'image', deployment, 'server=localhost/other:v1');
    await world.kubectl('scale', deployment, '--replicas=0');
    await world.kubectl('delete', 'service', `svc-slot-${workload.slot}`);
    const altered = await seen('drift', (each) => (world.runtime.traits.inPlace?.findAltered(workload, each) ?? []).length === 3);
    expect(world.runtime.traits.inPlace?.findAltered(workload, altered)).toEqual([
      'replicas 0 instead of 1',
      `image "localhost/other:v1" instead of "${WORKLOAD_IMAGE}" (by "kubectl-set")`,
      `Service "svc-slot-${workload.slot}" deleted`,
    ]);
    expect(await apply(workload)).toBe(id);
    const repaired = await ready();
    expect(world.runtime.traits.inPlace?.findAltered(workload, repaired)).toEqual([]);
    const env = await (await fetch(`http://${repaired.endpoints[0]?.host}:8080/env`)).text();
    expect(env).toContain('OTHER=theirs');
    expect(await world.kubectl('get', deployment, '--output', 'jsonpath={.metadata.labels.team}')).toBe('red');
    expect(await left('services')).not.toBe('');
  });

  test('gives pods what the overlay of a slot says, and finds no drift in it', async () => {
    world = await createKubeWorld('overlay', {
      SVC_IMAGE_PULL_SECRETS: ['installation'],
      podProxy: { HTTPS_PROXY: 'http://proxy.example' },
    });
    const { kubectl, namespace } = world;
    const priorityClassName = `${namespace}-high`;
    await kubectl('create', 'secret', 'generic', 'credentials', '--from-literal=token=t0ken');
    await kubectl('create', 'configmap', 'settings', '--from-literal=colour=blue');
    await kubectl('create', 'priorityclass', priorityClassName, '--value=7');
    try {
      const plain = world.workload({ port: 8080 });
      const pod = { ...RICH_OVERLAY, priorityClassName };
      const workload = { ...plain, cluster: { ...plain.cluster, pod } };
      const id = await apply(workload);
      const found = await ready();
      expect(world.runtime.traits.inPlace?.findAltered(workload, found)).toEqual([]);
      const { items } = JSON.parse(await kubectl('get', 'pods', '--output', 'json'));
      const [{ metadata, spec }] = items;
      expect(metadata).toMatchObject({ labels: pod.labels, annotations: pod.annotations });
      expect(spec).toMatchObject({
        imagePullSecrets: [{ name: 'installation' }, { name: 'registry' }],
        priority: 7,
        securityContext: pod.securityContext,
        topologySpreadConstraints: pod.topologySpreadConstraints,
        affinity: pod.affinity,
      });
      expect(spec.containers[0].resources).toEqual({
        requests: { cpu: '100m', memory: '32Mi', 'ephemeral-storage': '64Mi' },
        limits: { cpu: '2', memory: '256Mi', 'ephemeral-storage': '1Gi' },
      });
      const inPod = async (script: string): Promise<string> =>
        await kubectl('exec', metadata.name, '--container', 'server', '--', 'sh', '-c', script);
      expect(await inPod('cat /etc/credentials/api/token /etc/settings/colour; id -u; id -G')).toBe('t0kenblue1000680000\n0 44 1000680000');
      expect(
        await inPod(
          'echo "$API_TOKEN $MODE $CPUS $FROM_colour $token $GREETING $HTTPS_PROXY $https_proxy"; test -s /var/run/identity/token && touch /tmp/cache/x',
        ),
      ).toBe(`t0ken quiet 2 blue t0ken ${plain.env['GREETING']} http://proxy.example http://proxy.example`);
      // Applying it again is no roll-out, and what others change in the overlay is reverted.
      const generation = async (): Promise<string> =>
        await kubectl('get', 'deployment', workload.name, '--output', 'jsonpath={.metadata.generation}');
      const before = await generation();
      expect(await apply(workload)).toBe(id);
      expect(await generation()).toBe(before);
      await kubectl('set', 'resources', `deployment/${workload.name}`, '--containers=server', '--limits=cpu=3');
      const altered = await seen('drift', (each) => (world.runtime.traits.inPlace?.findAltered(workload, each) ?? []).length > 0);
      expect(world.runtime.traits.inPlace?.findAltered(workload, altered)).toEqual([
        expect.stringMatching(/^resources\.limits\.cpu "3" instead of "2000m"/),
      ]);
      expect(await apply(workload)).toBe(id);
      await seen('no drift', (each) => world.runtime.traits.inPlace?.findAltered(workload, each).length === 0);
    } finally {
      await kubectl('delete', 'priorityclass', priorityClassName);
    }
  });

  test('reports what a pod waits for', async () => {
    world = await createKubeWorld('waiting', { SVC_IMAGE: WORKLOAD_IMAGE });
    const plain = world.workload({ port: 8080 });
    const big = await apply({ ...plain, cluster: { ...plain.cluster, memoryBytes: 2 ** 50 } });
    const waiting = await seen('waiting', ({ waitingReason }) => waitingReason !== undefined);
    expect(waiting).toMatchObject({ id: big, phase: 'created', waitingReason: { kind: 'placement', reason: 'Unschedulable' } });
    expect(waiting.waitingReason?.message).toContain('not enough free memory (1Pi requested)');
    expect(await world.runtime.stop(big, { graceMs: 0 }, SIGNAL)).toMatchObject({ ok: true });

    // The image does not contain this program, so the model cannot be fetched.
    const reads = { ...plain, mounts: [{ source: '/models', target: '/models', readOnly: true }] };
    await apply(reads);
    const failing = await seen('waiting', ({ waitingReason }) => waitingReason?.kind === 'model');
    expect(failing).toMatchObject({
      phase: 'created',
      waitingReason: { reason: 'ModelPullFailed', message: expect.stringContaining('svcctl') },
    });
  });

  test('every object is deleted with the slot', async () => {
    world = await createKubeWorld('cascade');
    const plain = world.workload({ port: 8080 });
    await apply({ ...plain, cluster: { ...plain.cluster, storage: { size: '1Gi', className: 'none' } } });
    expect((await left('deployments,services,configmaps,persistentvolumeclaims')).split('\n')).toHaveLength(4);
    await world.kubectl('delete', 'configmap', 'owner');
    await eventually(
      'nothing is left',
      async () => ((await left('deployments,services,configmaps,persistentvolumeclaims')) === '' ? true : undefined),
      60_000,
    );
  });
});
