/** The kube runtime with a fake API server and a controller that terminates the pods of Deployments without replicas. Tests create the pods. */
import type { KubeObject } from '../../../src/cluster/client/ports.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { ObservedWorkload, Runtime, Workload } from '../../../src/reconciler/ports.ts';
import type { KubeSettings, KubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import { createKubeReflectors } from '../../../src/cluster/workloads/workload-reflectors.ts';
import { createKubeRuntime } from '../../../src/cluster/workloads/cluster-runtime.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { startFakeKubeApi, type FakeKubeApi, type FakeKubeOptions } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { startDeploymentController, type ControllerLags } from '../../support/kube/deployment-controller.ts';
import type { StoredObject } from '../../support/kube/fake-kube-types.ts';
import { OWNER, podOf, SETTINGS, type PodChoice } from './workload-fixtures.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';

export interface FakeKubeWorld {
  readonly fake: FakeKubeApi;
  readonly runtime: Runtime;
  /** Ends the term of this replica. */
  readonly term: AbortController;
  /** Added to the real time. */
  readonly clock: { aheadMs: number };
  apply(workload: Workload): Promise<WorkloadId>;
  workloads(): Promise<readonly ObservedWorkload[]>;
  deployment(name?: string): StoredObject | undefined;
  /** Creates a pod of the workload, and waits until the copy has it. */
  pod(workload: KubeWorkload, choice?: PodChoice): Promise<void>;
  close(): Promise<void>;
}

interface FakeWorldOptions extends FakeKubeOptions {
  /** What is done for Deployments: their status is written, and pods that are too many are terminated. Default: both. */
  readonly scales?: 'both' | 'status' | 'nothing';
  /** Deployments have ReplicaSets, which create and remove pods. Default: tests create the pods. */
  readonly controller?: ControllerLags;
}

const NAMESPACE = 'default';

export async function createFakeKubeWorld(settings: Partial<KubeSettings> = {}, options: FakeWorldOptions = {}): Promise<FakeKubeWorld> {
  const fake = await startFakeKubeApi({ longestGraceMs: 60_000, ...options });
  const ends = new AbortController();
  const term = new AbortController();
  const clock = { aheadMs: 0 };
  const api = await connectToFake(fake, NAMESPACE);
  const owner = fake.put(CONFIG_MAPS, NAMESPACE, { metadata: { name: 'owner' } });
  const reflectors = createKubeReflectors({ api });
  const runtime = createKubeRuntime({
    api,
    reflectors,
    settings: { ...SETTINGS, ...settings },
    ownerOf: (slot) =>
      slot === 'unknown' ? undefined : { ...OWNER, kind: 'ConfigMap', apiVersion: 'v1', name: 'owner', uid: owner.metadata.uid },
    term: () => term.signal,
    clock: { now: () => performance.now() + clock.aheadMs, wallNow: () => Date.now() + clock.aheadMs },
  });
  const observe = async () => await runtime.observe([], ends.signal);
  const { scales = 'both' } = options;
  const scaleDown = (): void => {
    for (const deployment of fake.objects(DEPLOYMENTS, NAMESPACE)) {
      const status = { observedGeneration: deployment.metadata.generation };
      if (JSON.stringify(deployment['status']) !== JSON.stringify(status)) fake.put(DEPLOYMENTS, NAMESPACE, { ...deployment, status });
    }
    if (scales === 'status') return;
    const empty = fake.objects(DEPLOYMENTS, NAMESPACE).filter(({ spec }) => isTable(spec) && spec['replicas'] === 0);
    const uids = new Set(empty.map(({ metadata }) => metadata.uid));
    for (const { metadata } of fake.objects(PODS, NAMESPACE)) {
      const isDue = metadata.deletionTimestamp === undefined && metadata.ownerReferences?.some(({ uid }) => uids.has(uid)) === true;
      if (isDue) void api.remove(PODS, metadata.name, {}, ends.signal);
    }
  };
  if (options.controller !== undefined)
    startDeploymentController({ fake, api, namespace: NAMESPACE, lags: options.controller, signal: ends.signal });
  else if (scales !== 'nothing') reflectors.deployments.changes(scaleDown, ends.signal);
  const unseen = await observe();
  if (unseen.ok) throw new Error('The runtime knows workloads before it listed any');
  for (const reflector of Object.values(reflectors)) reflector.start(ends.signal);
  await eventually('the first lists', async () => ((await observe()).ok ? true : undefined));
  const world: FakeKubeWorld = {
    fake,
    runtime,
    term,
    clock,
    async apply(workload) {
      const applied = await runtime.apply(workload, ends.signal);
      if (!applied.ok) throw new Error(`${applied.failure.reason}: ${applied.failure.message}`);
      return applied.value;
    },
    async workloads() {
      const facts = await observe();
      if (!facts.ok) throw new Error(facts.failure.message);
      return facts.value.workloads;
    },
    deployment: (name = 'svc-slot-primary') => fake.objects(DEPLOYMENTS, NAMESPACE).find(({ metadata }) => metadata.name === name),
    async pod(workload, choice) {
      const object: KubeObject = podOf(workload, choice);
      const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
      const parent = world.deployment(workload.name);
      const ownerReferences = [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: workload.name, uid: parent?.metadata.uid ?? '', controller: true },
      ];
      const { uid } = fake.put(PODS, NAMESPACE, { ...object, metadata: { ...metadata, ownerReferences } }).metadata;
      await eventually('the pod is seen', async () =>
        reflectors.pods.items().get(object.metadata.name)?.metadata.uid === uid ? true : undefined,
      );
    },
    async close() {
      ends.abort();
      await fake.close();
    },
  };
  return world;
}
