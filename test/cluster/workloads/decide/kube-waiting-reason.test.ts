/** The recorded pods are what a cluster of 1.20 said of pods that could not run; newer servers' words are written down beside them. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { readDeployment, readPod } from '../../../../src/cluster/workloads/decide/kube-facts.ts';
import type { DeploymentFacts, PodFacts } from '../../../../src/cluster/workloads/decide/kube-facts.ts';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/kube-objects.ts';
import { doingOf } from '../../../../src/cluster/workloads/decide/kube-phase.ts';
import { context, kubeWorkload, podOf, stored } from '../kube-fixtures.ts';

const RECORDED: readonly KubeObject[] = JSON.parse(await readFile(new URL('../recorded/kube-1.20-pods.json', import.meta.url), 'utf8'));

function recorded(name: string): PodFacts {
  const object = RECORDED.find(({ metadata }) => metadata.name === name);
  const pod = object === undefined ? undefined : readPod(object);
  if (pod === undefined) throw new Error(`Nothing was recorded as "${name}"`);
  return pod;
}

function deployment(failure?: string): DeploymentFacts {
  const object = stored(kubeObjects(kubeWorkload(), context()).deployment);
  const conditions = failure === undefined ? [] : [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: failure }];
  const facts = readDeployment({ ...object, status: { conditions } });
  if (facts === undefined) throw new Error('No Deployment');
  return facts;
}

function madeUp(status: Readonly<Record<string, unknown>>, spec: Readonly<Record<string, unknown>> = {}): PodFacts {
  const object = podOf(kubeWorkload(), { ready: false, status: { conditions: [], containerStatuses: [], phase: 'Pending', ...status } });
  const pod = readPod({ ...object, spec: { ...(typeof object['spec'] === 'object' ? object['spec'] : {}), ...spec } });
  if (pod === undefined) throw new Error('No pod');
  return pod;
}

const unscheduled = (message: string, spec = {}): PodFacts =>
  madeUp({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] }, spec);
const waiting = (reason: string, message: string): PodFacts =>
  madeUp({ containerStatuses: [{ name: 'server', ready: false, restartCount: 0, state: { waiting: { reason, message } } }] });
const told = (pods: readonly PodFacts[], failure?: string) => doingOf(deployment(failure), pods, undefined, undefined).waitingReason;

describe('what keeps a recorded pod from running', () => {
  test.each([
    [
      'memory',
      'placement',
      'Unschedulable',
      'No node takes the pod: too little free memory (900Gi asked for). Free memory, add a node, or lower "resources.memory"',
    ],
    [
      'gpu',
      'placement',
      'Unschedulable',
      'No node takes the pod: no free "nvidia.com/gpu" (1 asked for). Add a node that has it with its device plugin, unload another slot, or choose another "backend" or "gpus"',
    ],
    [
      'selector',
      'placement',
      'Unschedulable',
      'No node takes the pod: no node has the label "disk=fast". Label a fitting node with "kubectl label node NAME disk=fast", or change "nodeSelector"',
    ],
    [
      'affinity',
      'placement',
      'Unschedulable',
      'No node takes the pod: no node has the label "inference.svc.dev/backend-npu=true". Label a fitting node with "kubectl label node NAME inference.svc.dev/backend-npu=true", or change "backend" or "gpus"',
    ],
    [
      'claim',
      'placement',
      'Unschedulable',
      'No node takes the pod: there is no claim "nope". Make the claim, or name another one in "storage"',
    ],
    ['unbound', 'placement', 'Unschedulable', expect.stringContaining('the claim for the models has no volume yet')],
    [
      'image',
      'image',
      'ImagePullBackOff',
      expect.stringMatching(
        /^The node cannot pull the image "localhost:1\/nothing\/here:v1": its registry does not answer \(.*connection refused\)$/,
      ),
    ],
    ['badname', 'image', 'InvalidImageName', expect.stringContaining('Correct the name of the image "UPPER case:v1"')],
    [
      'never',
      'image',
      'ErrImageNeverPull',
      'The node cannot pull the image "localhost/absent:v1": it is not there, and must not be pulled',
    ],
    ['config', 'other', 'CreateContainerConfigError', expect.stringContaining('waits for the ConfigMap "absent"')],
    ['root', 'other', 'CreateContainerConfigError', expect.stringContaining('would run as root')],
    ['init', 'model', 'ModelPullFailed', expect.stringContaining('Model "qwen" is not in the catalogue: put it into the store')],
    [
      'evicted',
      'placement',
      'Evicted',
      'Node "node1" evicted the pod: Usage of EmptyDir volume "tmp" exceeds the limit "1Mi"; another one is made',
    ],
  ])('%s: %s, %s', (name, kind, reason, message) => {
    const doing = doingOf(deployment(), [recorded(name)], undefined, undefined);
    expect(doing).toMatchObject({ phase: 'created', endpoints: [], startedAt: undefined, waitingReason: { kind, reason } });
    expect(doing.waitingReason?.message).toEqual(message);
    expect(doing).not.toHaveProperty('exit');
  });

  test.each([
    [{ persistentVolumeClaim: { claimName: 'weights' } }, '"/models" is the claim "weights"'],
    [{ hostPath: { path: '/srv/models' } }, '"/models" is "/srv/models" of node "node1"'],
    [{ emptyDir: {} }, 'give the slot a "storage"'],
  ])('a file that is missing belongs where the models lie: %j', (volume, where) => {
    const message = 'Put the file "/models/own.gguf" into the model store';
    const fetcher = { name: 'model', state: { terminated: { exitCode: 1, reason: 'Error', message } } };
    const pod = madeUp({ initContainerStatuses: [fetcher] }, { volumes: [{ name: 'models', ...volume }] });
    expect(told([pod])?.message).toMatch(message);
    expect(told([pod])?.message).toContain(where);
  });

  test('a model whose fetching went over the memory of the pod asks for more of it', () => {
    const fetcher = { name: 'model', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } };
    const containers = [{ name: 'server', resources: { limits: { memory: '12Mi' } } }];
    expect(told([madeUp({ initContainerStatuses: [fetcher] }, { containers })])?.message).toContain('raise "resources.memory"');
  });

  test('while its model is fetched there is none', () => {
    expect(doingOf(deployment(), [recorded('initruns')], undefined, undefined)).toMatchObject({
      phase: 'created',
      fetching: expect.any(String),
    });
    expect(told([recorded('initruns')])).toBeUndefined();
  });

  test.each([
    ['crash', 7, false, undefined],
    ['oom', 137, true, 'Killed for going over its memory limit of 32Mi: raise "resources.memory"'],
    ['noprogram', 128, false, 'The image has no program "llama-server-absent": choose another toolbox image'],
  ])('%s is an exit with code %d', (name, code, outOfMemory, message) => {
    const doing = doingOf(deployment(), [recorded(name)], undefined, undefined);
    expect(doing).toMatchObject({ phase: 'created', endpoints: [], exit: { code, outOfMemory } });
    expect(doing.exit?.message).toBe(message);
    expect(doing).not.toHaveProperty('waitingReason');
  });
});

describe('what newer servers say', () => {
  test.each([
    [
      '0/5 nodes are available: 1 node(s) had untolerated taint {gpu: only}, 2 Insufficient memory, 2 node(s) were unschedulable. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.',
      'No node takes the pod: kept for others by the taint "gpu: only" (1 of 5 nodes), too little free memory (2 of 5 nodes), closed to new pods (2 of 5 nodes). Add it to "tolerations"; or free memory, add a node, or lower "resources.memory"; or open it with "kubectl uncordon NODE"',
    ],
    [
      "0/1 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate.",
      'No node takes the pod: kept for others by the taint "a: b". Add it to "tolerations"',
    ],
    [
      '0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.',
      'No node takes the pod: not usable now (disk-pressure). Look at the node with "kubectl describe node"',
    ],
    ['0/1 nodes are available: 1 cannot allocate all claims. preemption: none', expect.stringContaining('no free device of the class')],
    ['0/1 nodes are available: 1 something new.', 'No node takes the pod: something new'],
    ['no nodes available to schedule pods', 'No node takes the pod yet: no nodes available to schedule pods'],
    ['', 'No node takes the pod yet'],
  ])('of placement: %s', (said, message) => {
    expect(told([unscheduled(said)])?.message).toEqual(message);
  });

  test.each([
    [
      'Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound desc = failed to pull: not found',
      'its registry does not have it',
    ],
    ['Back-off pulling image "x": ErrImagePull: pull access denied, authorization failed', 'its registry refuses'],
    ['Back-off pulling image "x"', 'it is tried again'],
  ])('of images: %s', (said, message) => {
    expect(told([waiting('ImagePullBackOff', said)])).toMatchObject({
      kind: 'image',
      reason: 'ImagePullBackOff',
      message: expect.stringContaining(message),
    });
  });

  test('the cause of a failed pull stays while the kubelet only waits', () => {
    const failed = told([waiting('ErrImagePull', 'not found')]);
    const backOff = doingOf(deployment(), [waiting('ImagePullBackOff', 'Back-off pulling image "x"')], failed, undefined).waitingReason;
    expect(failed?.message).toContain('does not have it');
    expect(backOff).toBe(failed);
  });

  test.each([
    [
      'pods "d-74db987df8-n6px7" is forbidden: exceeded quota: small, requested: requests.memory=1Gi, used: requests.memory=0, limited: requests.memory=64Mi',
      'placement',
      'QuotaExceeded',
      'The quota "small" of the namespace does not allow the pod: requests.memory=1Gi asked for, requests.memory=0 used of requests.memory=64Mi. Raise it, or unload another slot',
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
      'The cluster refuses the pod: admission webhook "w" denied the request: no',
    ],
  ])('of pods that are not made: %s', (said, kind, reason, message) => {
    expect(told([], said)).toEqual({ kind, reason, message });
  });

  test('a pod that runs or waits elsewhere is not spoken for by one that was evicted', () => {
    expect(told([waiting('ContainerCreating', ''), recorded('evicted')])).toMatchObject({ reason: 'Evicted' });
    expect(told([unscheduled('0/1 nodes are available: 1 Too many pods.'), recorded('evicted')])).toMatchObject({
      reason: 'Unschedulable',
    });
  });
});
