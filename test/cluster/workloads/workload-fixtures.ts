/** Workloads and objects for the tests of the kube runtime. */
import type { KubeManifest, KubeObject, OwnerReference } from '../../../src/cluster/client/ports.ts';
import type { ClusterWorkload, Workload } from '../../../src/reconciler/ports.ts';
import { kubeObjects, type KubeContext, type KubeObjects } from '../../../src/cluster/workloads/decide/render-deployment.ts';
import type { KubeSnapshot } from '../../../src/cluster/workloads/observe-workloads.ts';
import { podLabels, type KubeSettings, type KubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import { ModelId, Revision, SlotName } from '../../../src/schema/words/names.ts';

export const SETTINGS: KubeSettings = {
  SVC_IMAGE: 'registry.example/svc:1',
  SVC_IMAGE_PULL_SECRETS: [],
  SVC_POD_USER: 65_532,
  SVC_POD_PROXY_SECRET: undefined,
  SVC_HF_TOKEN_SECRET: undefined,
  SVC_MODELS_CLAIM: undefined,
  SVC_MODELS_HOST_PATH: undefined,
  SVC_GPU_RESOURCES: { cuda: 'nvidia.com/gpu', rocm: 'amd.com/gpu', vulkan: 'amd.com/gpu' },
  SVC_GPU_ALLOCATION: 'auto',
  SVC_DISRUPTION_BUDGETS: true,
};

export const OWNER: OwnerReference = {
  apiVersion: 'inference.svc.dev/v1alpha1',
  kind: 'SlotSpec',
  name: 'primary',
  uid: 'owner-uid',
  controller: true,
  blockOwnerDeletion: true,
};

const CLUSTER: ClusterWorkload = {
  provider: 'gguf',
  backend: 'cpu',
  model: ModelId.parse('qwen3-8b'),
  replicas: 1,
  gpus: undefined,
  memoryBytes: 9 * 2 ** 30,
  readyPath: '/health',
  startTimeoutMs: 300_000,
  drainTimeoutMs: 30_000,
  nodeSelector: {},
  tolerations: [],
  storage: undefined,
  serviceAccountName: undefined,
};

type Choice = Partial<Omit<Workload, 'cluster' | 'slot' | 'revision' | 'image'>> & {
  readonly slot?: string;
  readonly revision?: string;
  readonly image?: KubeWorkload['image'];
  readonly cluster?: Partial<ClusterWorkload>;
};

export function kubeWorkload({ cluster, slot = 'primary', revision = '0123456789ab', ...rest }: Choice = {}): KubeWorkload {
  return {
    name: `svc-slot-${slot}`,
    slot: SlotName.parse(slot),
    revision: Revision.parse(revision),
    generation: 7,
    image: { reference: 'registry.example/gguf@sha256:00' },
    argv: ['llama-server', '--model', '/models/qwen3-8b.gguf', '--port', '8080'],
    env: { GREETING: 'hello', EMPTY: '' },
    mounts: [{ source: '/var/lib/svc/models', target: '/models', readOnly: true }],
    devices: [],
    port: { host: 8080, container: 8080 },
    memoryLimitBytes: undefined,
    ...rest,
    cluster: { ...CLUSTER, ...cluster },
  };
}

export const context = (settings: Partial<KubeSettings> = {}, allocation: KubeContext['allocation'] = 'device-plugin'): KubeContext => ({
  settings: { ...SETTINGS, ...settings },
  owner: OWNER,
  allocation,
});

/** Every manifest that the workload needs. */
export const manifestsOf = ({
  configMap,
  service,
  disruptionBudget,
  claim,
  claimTemplate,
  deployment,
}: KubeObjects): readonly KubeManifest[] =>
  [configMap, service, disruptionBudget, claim, claimTemplate, deployment].flatMap((each) => each ?? []);

/** Returns the object as a server stores it. */
export const stored = (manifest: KubeManifest, uid = `uid-of-${manifest.metadata.name}`, at = '2026-11-21T09:00:00Z'): KubeObject => ({
  ...JSON.parse(JSON.stringify(manifest)),
  metadata: { ...manifest.metadata, uid, resourceVersion: '1', creationTimestamp: at },
});

export interface PodChoice {
  readonly name?: string;
  readonly at?: string;
  readonly ip?: string;
  readonly ready?: boolean;
  readonly deleting?: boolean;
  readonly status?: Readonly<Record<string, unknown>>;
  /** Status of the server container. */
  readonly server?: Readonly<Record<string, unknown>>;
}

/** Returns a pod of a workload, ready by default. */
export function podOf(workload: KubeWorkload, choice: PodChoice = {}): KubeObject {
  const { name = `${workload.name}-x`, at = '2026-11-21T09:00:01Z', ready = true } = choice;
  const server = {
    name: 'server',
    ready,
    started: ready,
    restartCount: 0,
    state: { running: { startedAt: '2026-11-21T09:00:05Z' } },
    ...choice.server,
  };
  return {
    metadata: {
      name,
      uid: `uid-of-${name}`,
      resourceVersion: '1',
      creationTimestamp: at,
      labels: podLabels(workload),
      ...(choice.deleting === true ? { deletionTimestamp: '2026-11-21T09:10:00Z' } : {}),
    },
    spec: {
      nodeName: 'node1',
      terminationGracePeriodSeconds: 42,
      containers: [{ name: 'server', image: workload.image.reference, ports: [{ containerPort: workload.port.container }] }],
    },
    status: {
      phase: 'Running',
      podIP: choice.ip ?? '10.0.0.1',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      containerStatuses: [server],
      ...choice.status,
    },
  };
}

/** Returns a snapshot with all objects of these workloads, and the pods. */
export function snapshotOf(workloads: readonly KubeWorkload[], pods: readonly KubeObject[] = [], of = context()): KubeSnapshot {
  const objects = workloads.map((workload) => kubeObjects(workload, of));
  const byName = (list: readonly KubeObject[]) => new Map(list.map((object) => [object.metadata.name, object]));
  return {
    deployments: byName(objects.map(({ deployment }) => stored(deployment))),
    services: byName(objects.map(({ service }) => stored(service))),
    configMaps: byName(objects.map(({ configMap }) => stored(configMap))),
    pods: byName(pods),
    warnings: undefined,
  };
}

/** The status of a pod whose server crashed once and waits to be started again. */
export const CRASHED = {
  ready: false,
  server: {
    restartCount: 1,
    started: false,
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { exitCode: 3, finishedAt: '2026-11-21T09:01:00Z' } },
  },
} as const;
