/** Scaling a workload in a cluster: its Deployment is updated in place, and nothing else happens to its pods. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { DEPLOYMENTS, PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { KubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import { createFakeKubeWorld, type FakeKubeWorld } from './fake-world.ts';
import { CRASHED, kubeWorkload } from './workload-fixtures.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';

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

  test('scales a slot before the hundred new ones that wait for their turn', async () => {
    await start();
    await world.apply(WORKLOAD);
    world.fake.faults.delay({ verb: 'patch' }, 5);
    const others = Array.from({ length: 100 }, (_, index) => world.apply(kubeWorkload({ slot: `other-${index}` })));
    await eventually('some of them', async () => (world.fake.objects(DEPLOYMENTS, 'default').length > 5 ? true : undefined));
    world.fake.faults.clearLog();
    await world.apply(withCluster({ replicas: 3 }));
    const before = world.fake.faults.requests.filter(({ verb, resource }) => verb === 'patch' && resource === 'deployments');
    expect(before.length).toBeLessThan(30);
    expect(world.deployment()).toMatchObject({ spec: { replicas: 3 } });
    await Promise.all(others);
  });

  test('starts, scales and repairs a workload whose arguments are longer than all annotations of an object may be', async () => {
    await start();
    const args = Array.from({ length: 90 }, (_, index) => `${index}`.padEnd(4000, 'x'));
    const long: KubeWorkload = { ...WORKLOAD, argv: [...WORKLOAD.argv, ...args] };
    const id = await world.apply(long);
    await world.pod(WORKLOAD);
    const template = () => JSON.stringify(Object(world.deployment()?.['spec']).template);
    const before = template();
    expect(before.length).toBeGreaterThan(360_000);
    // As a newer version of the program might render it.
    const wanted = { ...long, cluster: { ...long.cluster, replicas: 3, readyPath: '/ready' } };
    expect(await world.apply(wanted)).toBe(id);
    expect(world.deployment()).toMatchObject({ spec: { replicas: 3 } });
    expect(template()).toBe(before);
    const [found] = await world.workloads();
    expect(found === undefined ? undefined : world.runtime.traits.inPlace?.findAltered(wanted, found)).toEqual([]);
    // Somebody cuts the arguments, and only what the program renders now still has them.
    const present = world.deployment();
    world.fake.put(DEPLOYMENTS, 'default', {
      ...present,
      ...JSON.parse(JSON.stringify({ spec: present?.['spec'] }).replace(/"89x+"/, '"89"')),
    });
    await eventually('drift', async () => {
      const [altered] = await world.workloads();
      const drift = altered === undefined ? [] : world.runtime.traits.inPlace?.findAltered(wanted, altered);
      return drift?.[0]?.startsWith('args changed') === true ? true : undefined;
    });
    expect(await world.apply(wanted)).toBe(id);
    expect(template()).toBe(before);
  });

  test('keeps the pods of a workload whose record is from an earlier version, with every text in full', async () => {
    await start();
    const long: KubeWorkload = { ...WORKLOAD, argv: [...WORKLOAD.argv, 'x'.repeat(4000)] };
    const id = await world.apply(long);
    await world.pod(WORKLOAD);
    const before = world.deployment();
    const annotations = { ...before?.metadata.annotations, 'inference.svc.dev/applied': JSON.stringify(before?.['spec']) };
    world.fake.put(DEPLOYMENTS, 'default', { ...before, metadata: { ...before?.metadata, annotations } });
    await eventually('the former record is seen', async () => {
      const [found] = await world.workloads();
      return JSON.stringify(found?.record ?? '').length > 8000 ? true : undefined;
    });
    world.fake.faults.clearLog();
    expect(await world.apply(long)).toBe(id);
    expect(world.fake.faults.requests.filter(({ verb }) => verb !== 'watch')).toEqual([]);
    const [found] = await world.workloads();
    expect(found === undefined ? undefined : world.runtime.traits.inPlace?.findAltered(long, found)).toEqual([]);
    const template = JSON.stringify(Object(world.deployment()?.['spec']).template);
    expect(await world.apply({ ...long, cluster: { ...long.cluster, replicas: 2, readyPath: '/ready' } })).toBe(id);
    expect(world.deployment()).toMatchObject({ spec: { replicas: 2 } });
    expect(JSON.stringify(Object(world.deployment()?.['spec']).template)).toBe(template);
    expect(world.deployment()?.metadata.annotations?.['inference.svc.dev/applied']?.length).toBeLessThan(4000);
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
