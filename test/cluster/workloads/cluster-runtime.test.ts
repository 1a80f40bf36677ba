import { afterEach, describe, expect, test } from '@jest/globals';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  DEVICE_CLASSES,
  DISRUPTION_BUDGETS,
  PODS,
  RESOURCE_CLAIM_TEMPLATES,
  SERVICES,
} from '../../../src/cluster/client/decide/resource-path.ts';
import type { KubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import type { ResourceType } from '../../../src/cluster/client/ports.ts';
import { createFakeKubeWorld, type FakeKubeWorld } from './fake-world.ts';
import { CRASHED, kubeWorkload } from './workload-fixtures.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';

const SIGNAL = new AbortController().signal;
const WORKLOAD = kubeWorkload();

let world: FakeKubeWorld;
afterEach(async () => await world.close());
const start = async (...options: Parameters<typeof createFakeKubeWorld>): Promise<void> => {
  world = await createFakeKubeWorld(...options);
};

const named = (type: ResourceType) =>
  world.fake
    .objects(type, 'default')
    .map(({ metadata }) => metadata.name)
    .filter((name) => name !== 'owner');
const writes = () =>
  world.fake.faults.requests
    .filter(({ verb }) => verb !== 'get' && verb !== 'list' && verb !== 'watch')
    .map(({ verb, resource }) => `${verb} ${resource}`);
const withCluster = (cluster: Partial<KubeWorkload['cluster']>): KubeWorkload => ({
  ...WORKLOAD,
  cluster: { ...WORKLOAD.cluster, ...cluster },
});
const stop = async (id: Awaited<ReturnType<FakeKubeWorld['apply']>>, graceMs = 10_000) => await world.runtime.stop(id, { graceMs }, SIGNAL);

describe('apply() of the kube runtime', () => {
  test('creates what the pods need first, and writes nothing when everything is present', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    expect(writes().slice(0, 2).toSorted()).toEqual(['patch configmaps', 'patch services']);
    expect(writes()[2]).toBe('patch deployments');
    expect(world.fake.faults.requests.filter(({ verb }) => verb === 'get')).toEqual([]);
    expect(await world.workloads()).toMatchObject([{ id, phase: 'created', revision: WORKLOAD.revision, generation: 7 }]);
    world.fake.faults.clearLog();
    expect(await world.apply(WORKLOAD)).toBe(id);
    expect(world.fake.faults.requests.filter(({ verb }) => verb !== 'watch')).toEqual([]);
  });

  test('does not take over a foreign Deployment', async () => {
    await start();
    world.fake.put(DEPLOYMENTS, 'default', { metadata: { name: WORKLOAD.name, labels: { app: 'theirs' } }, spec: { replicas: 3 } });
    expect(await world.runtime.apply(WORKLOAD, SIGNAL)).toMatchObject({ ok: false, failure: { kind: 'retry', reason: 'NameTaken' } });
    expect(world.deployment()).toMatchObject({ metadata: { labels: { app: 'theirs' } }, spec: { replicas: 3 } });
    expect(world.deployment()?.spec).toEqual({ replicas: 3 });
  });

  test('starts nothing for a deleted slot, without an image, or without the facts of a cluster', async () => {
    await start();
    const { image: _image, ...noImage } = WORKLOAD;
    const { cluster: _cluster, ...noCluster } = WORKLOAD;
    expect(await world.runtime.apply(kubeWorkload({ slot: 'unknown' }), SIGNAL)).toMatchObject({ failure: { reason: 'SlotGone' } });
    expect(await world.runtime.apply({ ...noImage, image: undefined }, SIGNAL)).toMatchObject({
      failure: { kind: 'stalled', reason: 'ImageUnknown' },
    });
    expect(await world.runtime.apply(noCluster, SIGNAL)).toMatchObject({ failure: { kind: 'stalled' } });
    expect(writes()).toEqual([]);
  });

  test('writes nothing while another replica is the leader, and stops writing when its term ends', async () => {
    await start();
    world.fake.faults.delay({ verb: 'patch', resource: 'configmaps' }, 200);
    const applying = world.runtime.apply(WORKLOAD, SIGNAL);
    await eventually('a write under way', async () => (writes().includes('patch configmaps') ? true : undefined));
    world.term.abort();
    expect(await applying).toMatchObject({ ok: false, failure: { kind: 'retry', reason: 'NotLeading' } });
    expect(world.deployment()).toBeUndefined();
    world.fake.faults.clearLog();
    expect(await world.runtime.apply(WORKLOAD, SIGNAL)).toMatchObject({ failure: { reason: 'NotLeading' } });
    expect(writes()).toEqual([]);
  });

  test('reverts outside changes, but keeps additions', async () => {
    await start();
    const wanted = withCluster({ replicas: 2 });
    const id = await world.apply(wanted);
    const before = world.deployment();
    world.fake.put(DEPLOYMENTS, 'default', {
      ...before,
      metadata: { ...before?.metadata, labels: { ...before?.metadata.labels, team: 'red' } },
      spec: { ...Object(before?.['spec']), replicas: 0, paused: true },
    });
    world.fake.remove(SERVICES, 'default', 'svc-slot-primary');
    const altered = await eventually('drift', async () => {
      const [found] = await world.workloads();
      const drift = found === undefined ? [] : (world.runtime.traits.inPlace?.findAltered(wanted, found) ?? []);
      return drift.length === 2 ? drift : undefined;
    });
    expect(altered).toEqual(['replicas 0 instead of 2 (by "kubectl-edit")', 'Service "svc-slot-primary" deleted']);
    expect(await world.apply(wanted)).toBe(id);
    expect(world.deployment()).toMatchObject({ metadata: { labels: { team: 'red' } }, spec: { replicas: 2, paused: true } });
    expect(named(SERVICES)).toEqual(['svc-slot-primary']);
    const [repaired] = await world.workloads();
    expect(repaired === undefined ? undefined : world.runtime.traits.inPlace?.findAltered(wanted, repaired)).toEqual([]);
  });

  test('adopts what an orphaning deletion left, once the slot is declared again', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    const kinds = [DEPLOYMENTS, SERVICES, CONFIG_MAPS];
    const ours = (type: ResourceType) => world.fake.objects(type, 'default').filter(({ metadata }) => metadata.name !== 'owner');
    for (const type of kinds)
      for (const object of ours(type))
        world.fake.put(type, 'default', { ...object, metadata: { ...object.metadata, ownerReferences: [] } });
    const altered = await eventually('drift', async () => {
      const [found] = await world.workloads();
      const drift = found === undefined ? [] : (world.runtime.traits.inPlace?.findAltered(WORKLOAD, found) ?? []);
      return drift.length === 3 ? drift : undefined;
    });
    expect(altered[0]).toContain('owner reference missing');
    expect(await world.apply(WORKLOAD)).toBe(id);
    for (const type of kinds) expect(ours(type).map(({ metadata }) => metadata.ownerReferences?.length)).toEqual([1]);
    expect(await world.workloads()).toMatchObject([{ id, phase: 'running' }]);
    const [adopted] = await world.workloads();
    expect(adopted === undefined ? undefined : world.runtime.traits.inPlace?.findAltered(WORKLOAD, adopted)).toEqual([]);
  });

  test('replaces crashed pods, whose exit is then no longer reported', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD, CRASHED);
    expect(await world.workloads()).toMatchObject([{ phase: 'created', exit: { code: 3 } }]);
    expect(await world.apply(WORKLOAD)).toBe(id);
    await eventually('the pod is gone', async () => (named(PODS).length === 0 ? true : undefined));
    const [left] = await world.workloads();
    expect(left).toMatchObject({ id, phase: 'created' });
    expect(left).not.toHaveProperty('exit');
  });

  test('creates a crashed workload again if a newer version of the program renders another template', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD, CRASHED);
    const again = await world.apply(withCluster({ readyPath: '/ready' }));
    expect(again).not.toBe(id);
    expect(JSON.stringify(world.deployment())).toContain('"path":"/ready"');
    expect((await world.workloads()).find(({ phase }) => phase === 'created')).toMatchObject({ id: again });
  });

  test('replaces a ConfigMap that cannot be updated', async () => {
    await start();
    await world.apply(WORKLOAD);
    const name = 'svc-slot-primary-0123456789ab';
    const [before] = world.fake.objects(CONFIG_MAPS, 'default').filter(({ metadata }) => metadata.name === name);
    world.fake.put(CONFIG_MAPS, 'default', { ...before, data: { GREETING: 'altered' } });
    await eventually('drift', async () => {
      const [found] = await world.workloads();
      return found !== undefined && world.runtime.traits.inPlace?.findAltered(WORKLOAD, found).length === 1 ? true : undefined;
    });
    world.fake.faults.answer(
      { verb: 'patch', resource: 'configmaps' },
      { status: 422, reason: 'Invalid', message: 'field is immutable' },
      1,
    );
    await world.apply(WORKLOAD);
    const [after] = world.fake.objects(CONFIG_MAPS, 'default').filter(({ metadata }) => metadata.name === name);
    expect(after).toMatchObject({ data: { GREETING: 'hello', EMPTY: '' } });
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
  });

  test('gives a slot with several replicas a budget for evictions, also one that is scaled up later', async () => {
    await start();
    await world.apply(WORKLOAD);
    expect(named(DISRUPTION_BUDGETS)).toEqual([]);
    await world.apply(withCluster({ replicas: 2 }));
    const [budget] = world.fake.objects(DISRUPTION_BUDGETS, 'default');
    expect(budget).toMatchObject({
      metadata: { name: 'svc-slot-primary', labels: { 'inference.svc.dev/slot': 'primary' }, ownerReferences: [{ name: 'owner' }] },
      spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
    });
    // All pods of the slot, whatever their revision.
    expect(Object(budget?.['spec']).selector).toEqual({
      matchLabels: { 'inference.svc.dev/slot': 'primary', 'app.kubernetes.io/managed-by': 'svc' },
    });
  });

  test('creates no budget where that is turned off, and starts without one where the server has no such type', async () => {
    await start({ SVC_DISRUPTION_BUDGETS: false });
    await world.apply(withCluster({ replicas: 2 }));
    expect(named(DISRUPTION_BUDGETS)).toEqual([]);
    await world.close();
    await start();
    const missing = { status: 404, reason: 'NotFound', message: 'the server could not find the requested resource' };
    world.fake.faults.answer({ verb: 'patch', resource: 'poddisruptionbudgets' }, missing);
    await world.apply(withCluster({ replicas: 2 }));
    expect(named(DEPLOYMENTS)).toEqual(['svc-slot-primary']);
  });

  test('requests GPUs through DRA only if there is a device class for them', async () => {
    await start({}, { dra: true });
    const wanted = withCluster({ backend: 'cuda' });
    const id = await world.apply(wanted);
    expect(JSON.stringify(world.deployment())).toContain('"nvidia.com/gpu":"1"');
    await stop(id);
    world.fake.put(DEVICE_CLASSES, '', { metadata: { name: 'gpu.amd.com' } });
    const amd = await world.apply({ ...withCluster({ backend: 'rocm' }) });
    expect(named(RESOURCE_CLAIM_TEMPLATES)).toEqual(['svc-slot-primary-0123456789ab']);
    expect(JSON.stringify(world.deployment())).not.toContain('amd.com/gpu');
    await stop(amd);
    expect(named(RESOURCE_CLAIM_TEMPLATES)).toEqual([]);
  });

  test('starts nothing without a device if the slot wants one from a plugin, and no resource stands for it', async () => {
    await start({ SVC_GPU_ALLOCATION: 'dra' }, { dra: true });
    const { runtime } = world;
    expect(await runtime.apply(withCluster({ backend: 'npu', deviceAccess: 'plugin' }), new AbortController().signal)).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'DeviceMissing', message: expect.stringContaining('"resources.gpuResource"') },
    });
    expect(named(DEPLOYMENTS)).toEqual([]);
    // A slot on the CPU needs none.
    await world.apply(withCluster({ backend: 'cuda', gpus: 0, deviceAccess: 'plugin' }));
    expect(named(RESOURCE_CLAIM_TEMPLATES)).toEqual([]);
  });
});

describe('observe() of the kube runtime', () => {
  test('uses its copies for a while without a server, and then fails', async () => {
    await start();
    await world.apply(WORKLOAD);
    await world.fake.goDown();
    await world.fake.comeUp();
    expect(await world.workloads()).toHaveLength(1);
    await world.fake.goDown();
    world.clock.aheadMs = 31_000;
    const lost = await eventually('the loss is noticed', async () => {
      const facts = await world.runtime.observe([], SIGNAL);
      return facts.ok ? undefined : facts.failure;
    });
    expect(lost).toMatchObject({ kind: 'retry', reason: 'RuntimeUnreachable', message: expect.stringContaining('has not answered for') });
  });

  test('reports every image as present, since kubelets pull them', async () => {
    await start();
    const facts = await world.runtime.observe([{ reference: 'a' }], SIGNAL);
    expect(facts).toMatchObject({ ok: true, value: { images: [{ reference: 'a', present: true }] } });
    expect(await world.runtime.pull({ reference: 'a' }, () => undefined, SIGNAL)).toMatchObject({ ok: true });
  });
});
