/** Stops and starts while the controllers of the cluster act late: what has been stopped must not come back. */
import { expect, test } from '@jest/globals';
import { createRandom } from '../../support/simulation/seeded-random.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';
import { PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import { LABELS } from '../../../src/schema/pod/kube-fields.ts';
import { createFakeKubeWorld } from './fake-world.ts';
import { kubeWorkload } from './workload-fixtures.ts';

const SEEDS = Array.from({ length: 24 }, (_, index) => index + 1);
const SIGNAL = new AbortController().signal;
const WORKLOADS = [kubeWorkload(), kubeWorkload({ name: 'svc-slot-primary--ba9876543210', revision: 'ba9876543210' })];
/** Pods that do not terminate by themselves are removed by name after 5 s. Controllers are often slower than that. */
const LATE_MS = [5500, 8000] as const;

/** Returns what went wrong. */
async function live(seed: number): Promise<readonly string[]> {
  const random = createRandom(seed);
  const controller = {
    deployment: () => (random.chance(0.5) ? random.int(...LATE_MS) : random.int(0, 500)),
    replicaSet: () => random.int(0, 300),
    garbage: () => 600_000,
  };
  const world = await createFakeKubeWorld({}, { longestGraceMs: 100, collects: false, controller });
  const faults: string[] = [];
  const stopped = new Set<string>();
  world.fake.store.subscribe(({ resource, type, object }) => {
    const revision = object.metadata.labels?.[LABELS.revision] ?? '';
    if (resource.plural === 'pods' && type === 'ADDED' && stopped.has(revision))
      faults.push(`seed ${seed}: a pod of "${revision}" came back`);
  });
  const left = (): number => world.fake.objects(PODS, 'default').length;
  try {
    for (const workload of random.chance(0.5) ? WORKLOADS : WORKLOADS.toReversed()) {
      const id = await world.apply(workload);
      if (random.chance(0.7)) await eventually('a pod runs', async () => (left() > 0 ? true : undefined), 30_000);
      const result = await world.runtime.stop(id, { graceMs: 10_000 }, SIGNAL);
      if (!result.ok) faults.push(`seed ${seed}: ${result.failure.message}`);
      stopped.add(workload.revision);
      if (left() > 0) faults.push(`seed ${seed}: ${left()} pods are left`);
    }
    await new Promise((resolve) => setTimeout(resolve, LATE_MS[1] + 1000));
    if (left() > 0 || (await world.workloads()).length > 0) faults.push(`seed ${seed}: something is left in the end`);
  } finally {
    await world.close();
  }
  return faults;
}

test('a stopped workload does not come back, however late the controllers of the cluster act', async () => {
  expect((await Promise.all(SEEDS.map(live))).flat()).toEqual([]);
}, 120_000);
