/** Installs the service into a namespace of its own from the chart, like `helm install`, and uses it like users do: with kubectl and HTTP. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createKubeApi } from '../../../src/cluster/client/api-client.ts';
import { LEASES, PODS, SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { KubeApi, KubeObject } from '../../../src/cluster/client/ports.ts';
import { valueAt } from '../../../src/schema/pod/kube-fields.ts';
import type { Result } from '../../../src/schema/words/failure.ts';
import { kubectl as run } from '../require/require-cluster.ts';
import { pause } from '../service.ts';

const execute = promisify(execFile);
const GATEWAYS = 'app.kubernetes.io/name=svc,app.kubernetes.io/component=gateway';

export interface SlotResourceView {
  readonly metadata: { readonly name: string; readonly uid: string; readonly generation: number; readonly resourceVersion: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly state?: string;
    readonly model?: string;
    readonly endpoint?: string;
    readonly observedGeneration?: number;
    readonly restarts?: number;
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
      readonly observedGeneration?: number;
    }[];
  };
}

export interface Installation {
  readonly namespace: string;
  /** The gateway's Service, by its address in the cluster. */
  readonly url: string;
  /** `kubectl -n <namespace> …`. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  apply(manifest: string): Promise<string>;
  slot(name: string): Promise<SlotResourceView | undefined>;
  pods(labelSelector: string): Promise<readonly KubeObject[]>;
  /** Polls until the predicate holds; fails with the objects, Events and logs of the installation. */
  until(name: string, what: string, holds: (slot: SlotResourceView) => boolean, timeoutMs?: number): Promise<SlotResourceView>;
  chat(body?: object, signal?: AbortSignal): Promise<Response>;
  /** Names of the running gateways. */
  gateways(): Promise<readonly string[]>;
  /** Name of the gateway that is the leader. */
  leader(): Promise<string>;
  dispose(): Promise<void>;
}

export interface InstallOptions {
  readonly namespace: string;
  /** YAML, merged over the values that the tests need. */
  readonly values?: string;
  /** Creates in the namespace what the values refer to. Returns further values, if it has any. */
  readonly before?: (kubectl: Installation['kubectl']) => Promise<string | void>;
  /** Default: the one of this checkout. */
  readonly release?: Release;
}

export interface Release {
  /** Directory of the chart. */
  readonly chart: string;
  /** `<repository>:<tag>`. */
  readonly image: string;
}

const THIS_RELEASE: Release = { chart: 'helm/svc', image: process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test' };

const GGUF_CPU = 'toolboxes:\n  gguf:\n    cpu:\n      image: localhost/svc-toolbox-gguf-cpu:v1\n';

export async function install({ namespace, values = 'replicas: 1\n', before, release }: InstallOptions): Promise<Installation> {
  const kubectl = async (args: readonly string[], input?: string) => run(['--namespace', namespace, ...args], input);
  await run(['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=120s']);
  await run(['create', 'namespace', namespace]);
  const more = (await before?.(kubectl)) ?? '';
  const versions = await run(['api-versions']);
  // The control plane of the test bed is older than the chart supports.
  const budget = versions.split('\n').includes('policy/v1') ? '' : 'podDisruptionBudget: { enabled: false }\n';
  await kubectl(['apply', '--filename', '-'], await render(namespace, `${values}${more}${budget}`, release));
  await kubectl(['rollout', 'status', 'deployment/svc', '--timeout=120s']);
  const address = await kubectl(['get', 'service', 'svc', '--output', 'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}']);
  const url = `http://${address}`;

  // What is polled: a process for each look takes a quarter of a second of a core, which the tests beside it need.
  const api: KubeApi = valueOf(await createKubeApi({ env: process.env, namespace, version: 'test' }));
  async function slot(name: string): Promise<SlotResourceView | undefined> {
    const found = await api.get(SLOT_SPECS, name, AbortSignal.timeout(30_000));
    if (!found.ok && found.failure.reason === 'NotFound') return undefined;
    const seen: SlotResourceView = JSON.parse(JSON.stringify(valueOf(found)));
    return seen;
  }

  const installation: Installation = {
    namespace,
    url,
    kubectl,
    apply: async (manifest) => kubectl(['apply', '--validate=false', '--filename', '-'], manifest),
    slot,
    pods: async (labelSelector) => valueOf(await api.list(PODS, { labelSelector }, AbortSignal.timeout(30_000))).items,
    async until(name, what, holds, timeoutMs = 90_000) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const seen = await slot(name);
        if (seen !== undefined && holds(seen)) return seen;
        if (Date.now() > deadline) {
          throw new Error(`"${name}" did not become ${what}: ${JSON.stringify(seen?.status)}\n${await story(kubectl)}`);
        }
        await pause(250);
      }
    },
    chat: async (body = {}, signal) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
        ...(signal === undefined ? {} : { signal }),
      }),
    async gateways() {
      const names = await kubectl(['get', 'pods', '--selector', GATEWAYS, '--output', 'jsonpath={.items[*].metadata.name}']);
      return names.split(' ').filter((each) => each !== '');
    },
    leader: async () =>
      String(valueAt(valueOf(await api.get(LEASES, 'svc-controller', AbortSignal.timeout(30_000))), 'spec', 'holderIdentity')),
    async dispose() {
      // Its pods may take a minute to terminate; the next `install` waits for that.
      await run(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
    },
  };
  return installation;
}

/** Returns the objects that `helm install` creates, as YAML. */
function valueOf<Value>(result: Result<Value>): Value {
  if (!result.ok) throw new Error(result.failure.message);
  return result.value;
}

export async function render(namespace: string, values: string, release = THIS_RELEASE): Promise<string> {
  return (await documents(namespace, values, release)).filter((document) => !HOOK.test(document)).join('---\n');
}

/** Returns the pod that `helm test` creates, as YAML. */
export async function renderTest(namespace: string, values: string): Promise<string> {
  const [pod, ...others] = (await documents(namespace, values, THIS_RELEASE)).filter((document) => HOOK.test(document));
  if (pod === undefined || others.length > 0) throw new Error('Correct this helper: the chart does not have exactly one test');
  return pod;
}

const HOOK = /^ {4}helm\.sh\/hook: test$/m;

/** Renders the chart with `helm template` or its replacement. Both print hooks too. */
async function documents(namespace: string, values: string, { chart, image }: Release): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-chart-'));
  try {
    const [repository, tag] = image.split(':');
    const own = join(directory, 'tests.yaml');
    const given = join(directory, 'values.yaml');
    await writeFile(own, `image: { repository: ${repository}, tag: ${tag} }\n${GGUF_CPU}`);
    await writeFile(given, values);
    const helm = process.env['SVC_TEST_HELM'];
    const common = ['svc', chart, '--namespace', namespace, '--values', own, '--values', given];
    const { stdout } = await (helm === undefined ? execute('helm', ['template', ...common]) : execute(helm, common));
    return stdout.split(/^---\n/m);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A slot for the demo models on the CPU. */
export function demoSlot(name: string, model: string, more = ''): string {
  const head = 'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\n';
  const spec = `spec:\n  provider: gguf\n  backend: cpu\n  model:\n    default: ${model}\n    args: ["--threads", "1"]\n`;
  return `${head}metadata:\n  name: ${name}\n${spec}${more}---\n`;
}

export function isReady(slot: SlotResourceView): boolean {
  return slot.status?.observedGeneration === slot.metadata.generation && conditionOf(slot, 'Ready')?.status === 'True';
}

export function conditionOf(slot: SlotResourceView | undefined, type: string) {
  return slot?.status?.conditions?.find((each) => each.type === type);
}

async function story(kubectl: Installation['kubectl']): Promise<string> {
  const outputOf = async (args: readonly string[]) => kubectl(args).catch((error: unknown) => String(error));
  const parts = await Promise.all([
    outputOf(['get', 'slotspecs,deployments,pods,services', '--output', 'wide']),
    outputOf(['get', 'events', '--sort-by=.lastTimestamp']),
    outputOf(['logs', '--selector', GATEWAYS, '--tail=40', '--prefix']),
  ]);
  return parts.map((part) => part.slice(-6000)).join('\n');
}
