/** Scaling a workload in a cluster: its Deployment is updated in place, and nothing else happens to its pods. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { KubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import { createFakeKubeWorld, type FakeKubeWorld } from './fake-world.ts';
import { CRASHED, kubeWorkload } from './workload-fixtures.ts';

const WORKLOAD = kubeWorkload();

let world: FakeKubeWorld;
afterEach(async () => await world.close());
const start = async (): Promise<void> => {
  world = await createFakeKubeWorld();
};

const pods = (): readonly string[] => world.fake.objects(PODS, 'default').map(({ metadata }) => metadata.name);
const deletedPods = () => world.fake.faults.requests.filter(({ verb, resource }) => verb === 'delete' && resource === 'pods');
const withCluster = (cluster: Partial<KubeWorkload['cluster']>): KubeWorkload => ({
  ...WORKLOAD,
  cluster: { ...WORKLOAD.cluster, ...cluster },
});

describe('apply() of the kube runtime', () => {
  test('scales in place without restarting pods, even if another template would be rendered now', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD);
    const template = JSON.stringify(Object(world.deployment()?.['spec']).template);
    // As a newer version of the program might render it.
    const wanted = withCluster({ replicas: 3, readyPath: '/ready' });
    const [found] = await world.workloads();
    expect(found === undefined ? undefined : world.runtime.traits.inPlace?.isOutdated(wanted, found)).toBe(true);
    expect(await world.apply(wanted)).toBe(id);
    expect(world.deployment()).toMatchObject({ spec: { replicas: 3 } });
    expect(JSON.stringify(Object(world.deployment()?.['spec']).template)).toBe(template);
    const [scaled] = await world.workloads();
    expect(scaled === undefined ? undefined : world.runtime.traits.inPlace?.isOutdated(wanted, scaled)).toBe(false);
  });

  test('scales without replacing crashed pods, for which their kubelet waits longer and longer', async () => {
    await start();
    const id = await world.apply(WORKLOAD);
    await world.pod(WORKLOAD, CRASHED);
    const before = pods();
    for (const replicas of [3, 2, 4]) expect(await world.apply(withCluster({ replicas }))).toBe(id);
    expect(world.deployment()).toMatchObject({ spec: { replicas: 4 } });
    expect(pods()).toEqual(before);
    expect(deletedPods()).toEqual([]);
  });
});
