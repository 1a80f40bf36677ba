/** A real cluster for the tests of runtimes, with a namespace of its own, and `kubectl` to change it without the runtime's knowledge. */
import { createKubeApi } from '../../src/cluster/client/api-client.ts';
import type { KubeApi } from '../../src/cluster/client/ports.ts';
import type { ObservedWorkload, Runtime, Workload } from '../../src/reconciler/ports.ts';
import type { KubeSettings } from '../../src/cluster/workloads/decide/object-names.ts';
import { createKubeReflectors } from '../../src/cluster/workloads/workload-reflectors.ts';
import { createKubeRuntime } from '../../src/cluster/workloads/cluster-runtime.ts';
import { createClock } from '../../src/platform/clock.ts';
import { LABELS } from '../../src/schema/pod/kube-fields.ts';
import { parseSizeBytes } from '../../src/schema/words/quantities.ts';
import { kubectl as run } from '../support/require/require-cluster.ts';
import { WORKLOAD_IMAGE } from '../support/require/require-podman.ts';
import { eventually, TINY_CLUSTER, tinyWorkload, type RuntimeWorld, type WorkloadChoice } from '../support/runtimes/runtime-world.ts';

export interface KubeWorld extends RuntimeWorld {
  readonly api: KubeApi;
  readonly namespace: string;
  /** Runs kubectl in the namespace. */
  kubectl(...args: readonly string[]): Promise<string>;
  workload(choice: WorkloadChoice): Workload & Required<Pick<Workload, 'cluster'>>;
}

/** `name` distinguishes the namespaces of one test file. */
export async function createKubeWorld(name: string, settings: Partial<KubeSettings> = {}): Promise<KubeWorld> {
  const namespace = `svc-${name}-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
  const kubectl = async (...args: readonly string[]): Promise<string> => (await run(['--namespace', namespace, ...args])).trim();
  await run(['create', 'namespace', namespace]);
  await kubectl('create', 'serviceaccount', 'reader');
  // Stands for the SlotSpec, which owns every object.
  const uid = await kubectl('create', 'configmap', 'owner', '--output', 'jsonpath={.metadata.uid}');
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, controller: true, blockOwnerDeletion: true };
  const ends = new AbortController();
  const api = await createKubeApi({ env: process.env, namespace, version: 'test' });
  if (!api.ok) throw new Error(api.failure.message);
  const open = (): Runtime => {
    const reflectors = createKubeReflectors({ api: api.value });
    for (const reflector of Object.values(reflectors)) reflector.start(ends.signal);
    return createKubeRuntime({
      api: api.value,
      reflectors,
      settings: { ...SETTINGS, ...settings },
      ownerOf: () => owner,
      term: () => ends.signal,
      clock: createClock(),
    });
  };
  const runtime = open();
  await eventually('the first lists', async () => ((await runtime.observe([], ends.signal)).ok ? true : undefined));
  await eventually('a service account', async () =>
    (await kubectl('get', 'serviceaccount', 'default', '--output', 'name')) === '' ? undefined : true,
  );
  return {
    api: api.value,
    namespace,
    kubectl,
    runtime,
    real: true,
    patienceMs: 60_000,
    reopen: open,
    workload,
    async exit({ endpoints: [endpoint] }, code) {
      await fetch(`http://${endpoint?.host}:${endpoint?.port}/exit/${code}`).catch(() => undefined);
    },
    crash: async (found) => await kill(kubectl, await podOf(kubectl, found)),
    vanish: async (found) => await vanish(kubectl, found),
    alter: async (found) => void (await kubectl('set', 'env', `deployment/${found.name}`, 'GREETING=altered')),
    scale: async (found, replicas) => void (await kubectl('scale', `deployment/${found.name}`, `--replicas=${replicas}`)),
    shows: async (found) => await podTemplateOf(kubectl, found),
    occupy: undefined,
    async dispose() {
      ends.abort();
      await run(['delete', 'namespace', namespace, '--wait=false']);
    },
  };
}

function workload(choice: WorkloadChoice): Workload & Required<Pick<Workload, 'cluster'>> {
  const port = 8080;
  return {
    ...tinyWorkload({ ...choice, port }, { host: '0.0.0.0', port }),
    image: { reference: WORKLOAD_IMAGE },
    cluster: TINY_CLUSTER,
  };
}

const SETTINGS: KubeSettings = {
  SVC_IMAGE: undefined,
  SVC_IMAGE_PULL_SECRETS: [],
  SVC_POD_USER: 65_532,
  SVC_POD_PROXY_SECRET: undefined,
  SVC_MODELS_CLAIM: undefined,
  SVC_MODELS_HOST_PATH: undefined,
  SVC_GPU_RESOURCES: {},
  SVC_GPU_ALLOCATION: 'auto',
  SVC_DISRUPTION_BUDGETS: true,
};

type Kubectl = KubeWorld['kubectl'];

const selector = ({ slot, revision }: ObservedWorkload): string => `${LABELS.slot}=${slot},${LABELS.revision}=${revision}`;

const podOf = async (kubectl: Kubectl, found: ObservedWorkload): Promise<string> =>
  await kubectl('get', 'pods', '--selector', selector(found), '--output', 'jsonpath={.items[0].metadata.name}');

interface ShownPods {
  readonly items: readonly {
    readonly metadata: { readonly deletionTimestamp?: string };
    readonly spec: {
      readonly terminationGracePeriodSeconds: number;
      readonly nodeSelector?: object;
      readonly tolerations?: readonly { readonly key?: string }[];
      readonly serviceAccountName: string;
      readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
      readonly containers: readonly {
        readonly command: readonly string[];
        readonly args: readonly string[];
        readonly resources: { readonly limits?: { readonly memory: string }; readonly requests: { readonly memory: string } };
        readonly readinessProbe: { readonly httpGet: { readonly path: string } };
        readonly startupProbe: { readonly failureThreshold: number; readonly periodSeconds: number };
      }[];
    };
  }[];
}

/** Seconds that pods get in addition: to start, after the reconciler's own limit; and to end, until gateways know and the server has exited. */
const START_MARGIN_S = 15;
const DRAIN_MARGIN_S = 12;

/** Reads the fields of a workload from its pods, as they really are; all of them must be equal. */
async function podTemplateOf(kubectl: Kubectl, found: ObservedWorkload): Promise<unknown> {
  const { items }: ShownPods = JSON.parse(await kubectl('get', 'pods', '--selector', selector(found), '--output', 'json'));
  const pods = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const shown = pods.map(({ spec }) => {
    const [server] = spec.containers;
    const bytesOf = (quantity: string | undefined) => (quantity === undefined ? undefined : parseSizeBytes(quantity));
    const storage = spec.volumes.find(({ name }) => name === 'models')?.hostPath?.path;
    return {
      argv: [...(server?.command ?? []), ...(server?.args ?? [])],
      memoryLimitBytes: bytesOf(server?.resources.limits?.memory),
      replicas: pods.length,
      memoryBytes: bytesOf(server?.resources.requests.memory),
      readyPath: server?.readinessProbe.httpGet.path,
      startTimeoutMs: ((server?.startupProbe.failureThreshold ?? 0) * (server?.startupProbe.periodSeconds ?? 0) - START_MARGIN_S) * 1000,
      drainTimeoutMs: (spec.terminationGracePeriodSeconds - DRAIN_MARGIN_S) * 1000,
      nodeSelector: spec.nodeSelector ?? {},
      // The cluster adds its own.
      tolerations: (spec.tolerations ?? []).filter(({ key }) => key?.startsWith('node.kubernetes.io/') !== true),
      storage: storage === undefined ? undefined : { hostPath: storage },
      serviceAccountName: spec.serviceAccountName === 'default' ? undefined : spec.serviceAccountName,
    };
  });
  const [first, ...others] = [...new Set(shown.map((each) => JSON.stringify(each)))];
  if (first === undefined || others.length > 0) throw new Error(`Its pods differ: ${shown.map((each) => JSON.stringify(each)).join('\n')}`);
  return shown[0];
}

/** Uses a pod that sees all processes of its node, since a process inside a container cannot kill its first process. */
export async function kill(kubectl: Kubectl, pod: string): Promise<void> {
  const security = { privileged: true, runAsUser: 0 };
  const container = {
    name: 'killer',
    image: WORKLOAD_IMAGE,
    imagePullPolicy: 'IfNotPresent',
    command: ['sleep', '600'],
    securityContext: security,
  };
  const overrides = { spec: { hostPID: true, terminationGracePeriodSeconds: 0, containers: [container] } };
  await kubectl('run', 'killer', '--image', WORKLOAD_IMAGE, '--restart', 'Never', '--overrides', JSON.stringify(overrides));
  await kubectl('wait', 'pod/killer', '--for', 'condition=Ready', '--timeout=60s');
  const script =
    'for (glob "/proc/[0-9]*/environ") { open F, $_ or next; local $/; my $e = <F> // ""; kill 9, /(\\d+)/ if $e =~ /(^|\\0)HOSTNAME=\\Q$ARGV[0]\\E\\0/ }';
  await kubectl('exec', 'killer', '--', 'perl', '-e', script, pod);
}

/** Deletes level by level, so that nothing is created again meanwhile and everything is gone soon. */
async function vanish(kubectl: Kubectl, found: ObservedWorkload): Promise<void> {
  await kubectl('delete', 'deployment', found.name, '--cascade=orphan');
  await kubectl('delete', 'replicasets', '--selector', selector(found), '--cascade=orphan');
  await kubectl('delete', 'pods,configmaps', '--selector', selector(found), '--grace-period=1', '--wait=false');
}
