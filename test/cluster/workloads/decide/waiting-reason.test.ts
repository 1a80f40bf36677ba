/** The recorded pods are from a cluster of 1.20 where they could not run; messages of newer servers are added by hand. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { parseDeployment, parsePod, type DeploymentFacts, type PodFacts } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { derivePhase } from '../../../../src/cluster/workloads/decide/workload-phase.ts';
import { context, kubeWorkload, podOf, stored } from '../workload-fixtures.ts';

const RECORDED: readonly KubeObject[] = JSON.parse(await readFile(new URL('../recorded/kube-1.20-pods.json', import.meta.url), 'utf8'));

function recorded(name: string): PodFacts {
  const object = RECORDED.find(({ metadata }) => metadata.name === name);
  const pod = object === undefined ? undefined : parsePod(object);
  if (pod === undefined) throw new Error(`There is no recording named "${name}"`);
  return pod;
}

function deployment(failure?: string): DeploymentFacts {
  const object = stored(kubeObjects(kubeWorkload(), context()).deployment);
  const conditions = failure === undefined ? [] : [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: failure }];
  const facts = parseDeployment({ ...object, status: { conditions } });
  if (facts === undefined) throw new Error('No Deployment');
  return facts;
}

function podWith(status: Readonly<Record<string, unknown>>, spec: Readonly<Record<string, unknown>> = {}): PodFacts {
  const object = podOf(kubeWorkload(), { ready: false, status: { conditions: [], containerStatuses: [], phase: 'Pending', ...status } });
  const pod = parsePod({ ...object, spec: { ...(typeof object['spec'] === 'object' ? object['spec'] : {}), ...spec } });
  if (pod === undefined) throw new Error('No pod');
  return pod;
}

const unscheduled = (message: string, spec = {}): PodFacts =>
  podWith({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] }, spec);
const waiting = (reason: string, message: string): PodFacts =>
  podWith({ containerStatuses: [{ name: 'server', ready: false, restartCount: 0, state: { waiting: { reason, message } } }] });
const reasonOf = (pods: readonly PodFacts[], failure?: string) => derivePhase(deployment(failure), pods).waitingReason;

describe('what keeps a recorded pod from running', () => {
  test.each([
    [
      'memory',
      'placement',
      'Unschedulable',
      'No node fits the pod: not enough free memory (900Gi requested). Free memory, add a node, or lower "resources.memory"',
    ],
    [
      'gpu',
      'placement',
      'Unschedulable',
      'No node fits the pod: no free "nvidia.com/gpu" (1 requested). Add a node that has it with its device plugin, unload another slot, or choose another "backend", "gpus" or "gpuResource"',
    ],
    [
      'selector',
      'placement',
      'Unschedulable',
      'No node fits the pod: no node has the label "disk=fast". Label a suitable node with "kubectl label node NAME disk=fast", or change "nodeSelector"',
    ],
    [
      'affinity',
      'placement',
      'Unschedulable',
      'No node fits the pod: no node has the label "inference.svc.dev/backend-npu=true". Label a suitable node with "kubectl label node NAME inference.svc.dev/backend-npu=true", or change "backend" or "deviceAccess"',
    ],
    [
      'claim',
      'placement',
      'Unschedulable',
      'No node fits the pod: the claim "nope" does not exist. Create the claim, or name another one in "storage"',
    ],
    ['unbound', 'placement', 'Unschedulable', expect.stringContaining('the claim for the models has no volume yet')],
    [
      'image',
      'image',
      'ImagePullBackOff',
      expect.stringMatching(
        /^The node cannot pull the image "localhost:1\/nothing\/here:v1": the registry does not respond \(.*connection refused\)$/,
      ),
    ],
    ['badname', 'image', 'InvalidImageName', expect.stringContaining('The image name "UPPER case:v1" is not valid')],
    [
      'never',
      'image',
      'ErrImageNeverPull',
      'The node cannot pull the image "localhost/absent:v1": the image is not on the node, and its pull policy forbids pulling it',
    ],
    ['config', 'other', 'CreateContainerConfigError', expect.stringContaining('waits for the ConfigMap "absent"')],
    ['root', 'other', 'CreateContainerConfigError', expect.stringContaining('would run as root')],
    ['init', 'model', 'ModelPullFailed', expect.stringContaining('Model "qwen" is not in the catalogue: put it into the store')],
    [
      'evicted',
      'placement',
      'Evicted',
      'Node "node1" evicted the pod: Usage of EmptyDir volume "tmp" exceeds the limit "1Mi"; a new pod will be created',
    ],
  ])('%s: %s, %s', (name, kind, reason, message) => {
    const derived = derivePhase(deployment(), [recorded(name)]);
    expect(derived).toMatchObject({ phase: 'created', endpoints: [], startedAt: undefined, waitingReason: { kind, reason } });
    expect(derived.waitingReason?.message).toEqual(message);
    expect(derived).not.toHaveProperty('exit');
  });

  test.each([
    ['DiskFull: The disk of "/models" is full; free disk space', 'DiskFull', 'The disk of "/models" is full; free disk space'],
    [
      'ModelGated: "https://huggingface.co/o/r" is gated; accept its terms',
      'ModelGated',
      '"https://huggingface.co/o/r" is gated; accept its terms',
    ],
    ['Nonsense: it is not a reason', 'ModelPullFailed', 'Nonsense: it is not a reason'],
    ['', 'ModelPullFailed', 'it exited with code 1'],
  ])('a model that cannot be fetched has the reason that its container names: %j', (said, reason, message) => {
    const terminated = { exitCode: 1, reason: 'Error', message: said };
    const pod = podWith({ initContainerStatuses: [{ name: 'model', ready: false, restartCount: 1, state: { terminated } }] });
    const expected = { kind: 'model', reason, message: `The model could not be fetched, and is tried again: ${message}` };
    expect(reasonOf([pod])).toEqual(expected);
  });

  test.each([
    [{ persistentVolumeClaim: { claimName: 'weights' } }, '"/models" is the claim "weights"'],
    [{ hostPath: { path: '/srv/models' } }, '"/models" is the directory "/srv/models" of node "node1"'],
    [{ emptyDir: {} }, 'set "storage" of the slot'],
  ])('a missing file belongs to the volume of the models: %j', (volume, where) => {
    const message = 'The file "/models/own.gguf" does not exist; put it into the model store';
    const fetcher = { name: 'model', state: { terminated: { exitCode: 1, reason: 'Error', message } } };
    const pod = podWith({ initContainerStatuses: [fetcher] }, { volumes: [{ name: 'models', ...volume }] });
    expect(reasonOf([pod])?.message).toMatch(message);
    expect(reasonOf([pod])?.message).toContain(where);
  });

  test('fetching a model that exceeds the memory of the pod asks for a higher limit', () => {
    const fetcher = { name: 'model', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } };
    const containers = [{ name: 'server', resources: { limits: { memory: '12Mi' } } }];
    expect(reasonOf([podWith({ initContainerStatuses: [fetcher] }, { containers })])?.message).toContain('raise "resources.memory"');
  });

  test('a fetch that is tried again has failed until it receives something', () => {
    const lastState = { terminated: { exitCode: 1, reason: 'Error', message: 'The file "/models/own.gguf" does not exist' } };
    const fetcher = { name: 'model', state: { running: {} }, lastState };
    const pod = podWith({ initContainerStatuses: [fetcher] });
    const reason = { kind: 'model', reason: 'ModelPullFailed', message: expect.stringContaining('does not exist') };
    expect(derivePhase(deployment(), [pod]).waitingReason).toEqual(reason);
    const fetched = new Map([[pod.metadata.uid, '1 B of 2 B (50 %)']]);
    expect(derivePhase(deployment(), [pod], { fetched }).waitingReason).toBeUndefined();
    const other = podWith({ initContainerStatuses: [{ ...fetcher, name: 'prepare' }] });
    expect(derivePhase(deployment(), [other]).waitingReason).toBeUndefined();
  });

  test('there is none while the model is fetched', () => {
    expect(derivePhase(deployment(), [recorded('initruns')])).toMatchObject({
      phase: 'created',
      fetching: expect.any(String),
    });
    expect(reasonOf([recorded('initruns')])).toBeUndefined();
  });

  test.each([
    ['crash', 7, false, undefined],
    ['oom', 137, true, 'Killed because it exceeded its memory limit of 32Mi: raise "resources.memory"'],
    ['noprogram', 128, false, 'The image does not contain the program "llama-server-absent": choose another toolbox image'],
  ])('%s is an exit with code %d', (name, code, outOfMemory, message) => {
    const derived = derivePhase(deployment(), [recorded(name)]);
    expect(derived).toMatchObject({ phase: 'created', endpoints: [], exit: { code, outOfMemory } });
    expect(derived.exit?.message).toBe(message);
    expect(derived).not.toHaveProperty('waitingReason');
  });
});

describe('what a customised pod waits for', () => {
  const required = (operator: string, values: readonly string[]) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator, values }] }] },
      },
    },
  });
  const mismatch = "0/1 nodes are available: 1 node(s) didn't match node selector.";

  test.each([
    ['In', ['fast'], 'Label a suitable node with "kubectl label node NAME disk=fast", or change "pod.affinity"'],
    ['Exists', [], 'no node has the requested labels. Change "pod.affinity.nodeAffinity", or label a node'],
  ])('a node with what its affinity requires: %s %j', (operator, values, advice) => {
    expect(reasonOf([unscheduled(mismatch, required(operator, values))])?.message).toContain(advice);
  });

  test.each([
    [
      'secret "credentials" not found',
      'the Secret "credentials", which does not exist; create it, or correct its name in "pod" of the slot',
    ],
    ['configmap "svc-slot-primary-0123456789ab" not found', 'which does not exist; the controller recreates it'],
    ["couldn't find key token in Secret svc/credentials", 'the key "token" of the Secret "credentials", which does not exist; add it'],
    [
      'container has runAsNonRoot and image will run as root (pod: "x", container: server)',
      'forbids; set "pod.securityContext.runAsUser", or build the image with another user',
    ],
  ])('%s', (cause, message) => {
    expect(reasonOf([waiting('CreateContainerConfigError', cause)])?.message).toContain(message);
  });
});

describe('Messages of newer servers', () => {
  test.each([
    [
      '0/5 nodes are available: 1 node(s) had untolerated taint {gpu: only}, 2 Insufficient memory, 2 node(s) were unschedulable. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.',
      'No node fits the pod: reserved by the taint "gpu: only" (1 of 5 nodes), not enough free memory (2 of 5 nodes), cordoned (2 of 5 nodes). Add it to "tolerations"; or free memory, add a node, or lower "resources.memory"; or allow new pods with "kubectl uncordon NODE"',
    ],
    [
      "0/1 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate.",
      'No node fits the pod: reserved by the taint "a: b". Add it to "tolerations"',
    ],
    [
      '0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.',
      'No node fits the pod: currently not usable (disk-pressure). Inspect the node with "kubectl describe node"',
    ],
    [
      '0/1 nodes are available: 1 cannot allocate all claims. preemption: none',
      expect.stringContaining('no free device of the requested class'),
    ],
    [
      "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't match pod topology spread constraints.",
      'No node fits the pod: pods run there that repel the pod (1 of 3 nodes), too many of the pods that "pod.topologySpreadConstraints" counts run there (2 of 3 nodes). Add a node, or change "pod.affinity.podAntiAffinity" of the slots; or add a node elsewhere, or set "whenUnsatisfiable" to "ScheduleAnyway"',
    ],
    [
      "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
      'No node fits the pod: no pod runs there that must attract the pod. Start that pod, or change "pod.affinity.podAffinity"',
    ],
    ['0/1 nodes are available: 1 something new.', 'No node fits the pod: something new'],
    ['no nodes available to schedule pods', 'No node fits the pod yet: no nodes available to schedule pods'],
    ['', 'No node fits the pod yet'],
  ])('about placement: %s', (text, message) => {
    expect(reasonOf([unscheduled(text)])?.message).toEqual(message);
  });

  test.each([
    [
      'Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound desc = failed to pull: not found',
      'the registry does not have it',
    ],
    ['Back-off pulling image "x": ErrImagePull: pull access denied, authorization failed', 'the registry denied access'],
    ['Back-off pulling image "x"', 'cannot pull the image "registry.example/gguf@sha256:00" and will retry'],
  ])('about images: %s', (text, message) => {
    expect(reasonOf([waiting('ImagePullBackOff', text)])).toMatchObject({
      kind: 'image',
      reason: 'ImagePullBackOff',
      message: expect.stringContaining(message),
    });
  });

  test('keeps the cause of a failed pull while kubelet only waits', () => {
    const failed = reasonOf([waiting('ErrImagePull', 'not found')]);
    const backOff = derivePhase(deployment(), [waiting('ImagePullBackOff', 'Back-off pulling image "x"')], {
      previous: failed,
    }).waitingReason;
    expect(failed?.message).toContain('does not have it');
    expect(backOff).toBe(failed);
  });

  test.each([
    [
      'pods "d-74db987df8-n6px7" is forbidden: exceeded quota: small, requested: requests.memory=1Gi, used: requests.memory=0, limited: requests.memory=64Mi',
      'placement',
      'QuotaExceeded',
      'The quota "small" of the namespace does not allow the pod (requested: requests.memory=1Gi, used: requests.memory=0, limited: requests.memory=64Mi). Raise the quota, or unload another slot',
    ],
    [
      'pods "e-6f8868b64f-" is forbidden: error looking up service account n/absent: serviceaccount "absent" not found',
      'other',
      'ServiceAccountMissing',
      expect.stringContaining('"absent"'),
    ],
    [
      'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged (container "server" must not set it)',
      'other',
      'PodForbidden',
      expect.stringContaining('"restricted:latest"'),
    ],
    [
      'admission webhook "w" denied the request: no',
      'other',
      'FailedCreate',
      'The cluster rejects the pod: admission webhook "w" denied the request: no',
    ],
  ])('about pods that cannot be created: %s', (text, kind, reason, message) => {
    expect(reasonOf([], text)).toEqual({ kind, reason, message });
  });

  test('an evicted pod counts only if no other pod has a reason', () => {
    expect(reasonOf([waiting('ContainerCreating', ''), recorded('evicted')])).toMatchObject({ reason: 'Evicted' });
    expect(reasonOf([unscheduled('0/1 nodes are available: 1 Too many pods.'), recorded('evicted')])).toMatchObject({
      reason: 'Unschedulable',
    });
  });
});
