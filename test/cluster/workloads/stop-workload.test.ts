import { afterEach, describe, expect, test } from '@jest/globals';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../../../src/cluster/client/decide/resource-path.ts';
import type { ResourceType } from '../../../src/cluster/client/ports.ts';
import { createFakeKubeWorld, type FakeKubeWorld } from './fake-world.ts';
import { kubeWorkload } from './workload-fixtures.ts';
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
const stop = async (id: Awaited<ReturnType<FakeKubeWorld['apply']>>, graceMs = 10_000) => await world.runtime.stop(id, { graceMs }, SIGNAL);

describe('stop() of the kube runtime', () => {
  test('removes the Deployment as soon as its pods terminate, and resolves when they are gone', async () => {
    await start({}, { longestGraceMs: 400 });
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    const stopping = stop(id);
    await eventually('the Deployment is gone', async () => (world.deployment() === undefined ? true : undefined));
    // The runtime learns that from its watch.
    await eventually('the workload is stopping', async () =>
      (await world.workloads()).some((each) => each.id === id && each.phase === 'stopping' && each.endpoints.length === 0)
        ? true
        : undefined,
    );
    expect(await stopping).toEqual({ ok: true, value: undefined });
    expect([named(PODS), named(CONFIG_MAPS), await world.workloads()]).toEqual([[], [], []]);
    // The slot keeps its Service, whatever runs in it.
    expect(named(SERVICES)).toEqual(['svc-slot-primary']);
    expect(await stop(id)).toEqual({ ok: true, value: undefined });
  });

  test('with a short grace period gives the pods only that time', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    expect(await stop(id, 300)).toEqual({ ok: true, value: undefined });
    expect(named(PODS)).toEqual([]);
  });

  test('does not wait for the garbage collector', async () => {
    await start({}, { longestGraceMs: 400, collects: false });
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    expect(await stop(id)).toEqual({ ok: true, value: undefined });
    expect([named(PODS), named(DEPLOYMENTS), await world.workloads()]).toEqual([[], [], []]);
  });

  test('removes pods by name if the controllers do not terminate them', async () => {
    await start({}, { longestGraceMs: 100, collects: false, scales: 'status' });
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    expect(await stop(id)).toEqual({ ok: true, value: undefined });
    expect([named(PODS), named(DEPLOYMENTS)]).toEqual([[], []]);
  }, 20_000);

  test('keeps the Deployment until the cluster has scaled it down, as its ReplicaSet would replace the pods', async () => {
    await start({}, { longestGraceMs: 100, collects: false, scales: 'nothing' });
    const id = await world.apply(WORKLOAD);
    const acts = (observedGeneration: number): void => {
      const deployment = world.deployment();
      if (deployment === undefined) throw new Error('The Deployment is gone');
      world.fake.put(DEPLOYMENTS, 'default', { ...deployment, status: { observedGeneration } });
    };
    acts(1);
    const stopping = stop(id);
    await eventually('it is scaled to zero', async () => (world.deployment()?.metadata.generation === 2 ? true : undefined));
    await world.pod(WORKLOAD);
    const [pod = ''] = named(PODS);
    world.fake.remove(PODS, 'default', pod);
    await world.pod(WORKLOAD);
    expect(named(DEPLOYMENTS)).toEqual([WORKLOAD.name]);
    acts(2);
    world.fake.remove(PODS, 'default', pod);
    expect(await stopping).toEqual({ ok: true, value: undefined });
    expect([named(PODS), named(DEPLOYMENTS), await world.workloads()]).toEqual([[], [], []]);
  });

  test('keeps the ConfigMap of another workload of the slot', async () => {
    await start();
    const other = kubeWorkload({ name: 'svc-slot-primary--ba9876543210', revision: 'ba9876543210' });
    const [first] = [await world.apply(WORKLOAD), await world.apply(other)];
    await stop(first);
    expect(named(DEPLOYMENTS)).toEqual([other.name]);
    expect(named(CONFIG_MAPS)).toEqual([`${other.name}-ba9876543210`]);
  });

  test('ends when its signal aborts', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    const given = new AbortController();
    const stopping = world.runtime.stop(id, { graceMs: 10_000 }, given.signal);
    await eventually('the Deployment is gone', async () => (world.deployment() === undefined ? true : undefined));
    given.abort();
    expect(await stopping).toMatchObject({ ok: false });
  });
});
