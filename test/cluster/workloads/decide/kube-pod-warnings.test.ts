/** What Events say of pods that do not begin. Messages as kubelets of 1.20 and of today write them. */
import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { readPod } from '../../../../src/cluster/workloads/decide/kube-facts.ts';
import type { PodFacts } from '../../../../src/cluster/workloads/decide/kube-facts.ts';
import { hasNotBegun, isStuck, podsIn, readWarnings, warnedTrouble } from '../../../../src/cluster/workloads/decide/kube-pod-warnings.ts';
import type { PodWarning } from '../../../../src/cluster/workloads/decide/kube-pod-warnings.ts';
import { kubeWorkload, podOf, type PodChoice } from '../kube-fixtures.ts';

const CREATING = { ready: false, started: false, state: { waiting: { reason: 'ContainerCreating' } } };
const UID = 'uid-of-svc-slot-primary-x';

function pod(choice: PodChoice = {}, spec: object = {}): PodFacts {
  const object = podOf(kubeWorkload(), { ready: false, server: CREATING, ...choice });
  const facts = readPod({ ...object, spec: { ...(typeof object['spec'] === 'object' ? object['spec'] : {}), ...spec } });
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

const CLAIM = { volumes: [{ name: 'models', persistentVolumeClaim: { claimName: 'models' } }] };

describe('a pod has not begun', () => {
  const init = (state: object, lastState?: object) => ({ status: { initContainerStatuses: [{ name: 'model', state, lastState }] } });
  test.each<[string, boolean, PodFacts]>([
    ['while its container is made', true, pod()],
    ['while its kubelet has said nothing', true, pod({ status: { containerStatuses: [] } })],
    ['while its init containers are to come', true, pod(init({ waiting: { reason: 'PodInitializing' } }))],
    ['but no node has taken it', false, pod({}, { nodeName: undefined })],
    ['but an init container runs', false, pod(init({ running: {} }))],
    ['but an init container is done', false, pod(init({ terminated: { exitCode: 0 } }))],
    ['but an init container failed before', false, pod(init({ waiting: { reason: 'PodInitializing' } }, { terminated: { exitCode: 1 } }))],
    ['but its status says why', false, pod({ server: { ...CREATING, state: { waiting: { reason: 'ImagePullBackOff' } } } })],
    ['but it is told to end', false, pod({ deleting: true })],
    ['but it is over', false, pod({ status: { phase: 'Failed' } })],
    ['but it runs', false, pod({ server: {} })],
  ])('%s: %s', (_name, expected, facts) => {
    expect(hasNotBegun(facts)).toBe(expected);
  });

  test('and is stuck after ten seconds', () => {
    const made = Date.parse(pod().metadata.creationTimestamp);
    expect([9000, 11_000].map((after) => isStuck(pod(), made + after))).toEqual([false, true]);
  });
});

function event(message: string, at: string, more: Readonly<Record<string, unknown>> = {}): KubeObject {
  return {
    metadata: { name: `x.${at}`, creationTimestamp: '2026-11-22T09:00:00Z' },
    involvedObject: { kind: 'Pod', uid: UID },
    reason: 'FailedMount',
    message,
    lastTimestamp: `2026-11-22T09:${at}Z`,
    ...more,
  };
}
const read = (...events: readonly KubeObject[]) => readWarnings(events, new Set([UID]), undefined)?.get(UID)?.message;
const TIMEOUT =
  'Unable to attach or mount volumes: unmounted volumes=[models], unattached volumes=[tmp models]: timed out waiting for the condition';

describe('of the Events of a pod', () => {
  test.each<[string, string | undefined, readonly KubeObject[]]>([
    ['the newest counts', 'new', [event('old', '01:00'), event('new', '02:00')]],
    ['wherever it stands', 'new', [event('new', '02:00'), event('old', '01:00')]],
    ['the cause counts more than that it lasted too long', 'cause', [event('cause', '01:00'), event(TIMEOUT, '02:00')]],
    ['and in the other order', 'cause', [event(TIMEOUT, '02:00'), event('cause', '01:00')]],
    ['that it lasted too long is better than nothing', TIMEOUT, [event(TIMEOUT, '02:00')]],
    [
      'a time may stand in a series',
      'b',
      [event('a', '01:00'), event('b', '00:30', { series: { lastObservedTime: '2026-11-22T09:05:00Z' } })],
    ],
    [
      'or in the event’s own time',
      'b',
      [event('a', '01:00'), event('b', '00:00', { lastTimestamp: null, eventTime: '2026-11-22T09:03:00Z' })],
    ],
    ['others’ do not count', undefined, [event('a', '01:00', { involvedObject: { kind: 'Pod', uid: 'other' } })]],
    ['other reasons do not count', undefined, [event('a', '01:00', { reason: 'BackOff' })]],
    ['what is no Event does not count', undefined, [{ metadata: { name: 'x' }, involvedObject: 'y' }]],
  ])('%s', (_name, expected, events) => {
    expect(read(...events)).toBe(expected);
  });

  test('the ids of attempts are left out, so that each says the same', () => {
    const attempt = (id: string) =>
      event(`Failed to create pod sandbox: rpc error: failed to setup network for sandbox "${id.repeat(64)}": no CNI`, '01:00', {
        reason: 'FailedCreatePodSandBox',
      });
    expect(read(attempt('a'))).toBe('Failed to create pod sandbox: rpc error: failed to setup network for sandbox: no CNI');
    expect(read(attempt('a'))).toBe(read(attempt('b')));
  });

  test('as long as they say the same the map is the same', () => {
    const before = readWarnings([event('a', '01:00')], new Set([UID]), undefined);
    expect(readWarnings([event('a', '02:00')], new Set([UID]), before)).toBe(before);
    expect(readWarnings([event('b', '02:00')], new Set([UID]), before)).not.toBe(before);
    expect(readWarnings([], new Set([UID]), before)).toBeUndefined();
  });
});

test('the pods that Events tell of', () => {
  expect([...podsIn([event('a', '01:00'), event('b', '02:00'), { metadata: { name: 'x' } }])]).toEqual([UID]);
});

describe('in words for people', () => {
  test.each<[PodWarning['reason'], string, object, string]>([
    [
      'FailedMount',
      'MountVolume.SetUp failed for volume "models" : hostPath type check failed: /srv/models is not a directory',
      {},
      'Node "node1" cannot mount "/srv/models": it is not a directory. Remove it there, or name another path in "storage.hostPath" or in the chart\'s "models.hostPath"',
    ],
    [
      'FailedMount',
      'MountVolume.NewMounter initialization failed for volume "pv-7" : path "/nowhere/models" does not exist',
      CLAIM,
      'Node "node1" cannot mount the volume "pv-7" of the claim "models", it is tried again: path "/nowhere/models" does not exist',
    ],
    [
      'FailedMount',
      'MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32\nMounting command: mount\nOutput: mount.nfs: access denied by server while mounting nas:/models to /var/lib/kubelet/pods/0b0a7a6e-7a1d-4e3a-9a0e-6f2f9d8f1c11/volumes/kubernetes.io~nfs/nfs\n',
      CLAIM,
      'Node "node1" cannot mount the volume "nfs" of the claim "models", it is tried again: Output: mount.nfs: access denied by server while mounting nas:/models to its place in the pod',
    ],
    ['FailedMount', TIMEOUT, CLAIM, `Node "node1" cannot mount the pod's volumes, it is tried again: ${TIMEOUT}`],
    [
      'FailedAttachVolume',
      'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can\'t be attached to another',
      CLAIM,
      'Node "node1" cannot attach the volume "pvc-1" of the claim "models", which another node uses. It is free when the pod there has ended; a claim that several nodes may use has the access mode "ReadWriteMany"',
    ],
    [
      'NetworkNotReady',
      'network is not ready: container runtime network not ready: NetworkReady=false',
      {},
      'Node "node1" cannot set up the pod, it is tried again: network is not ready: container runtime network not ready: NetworkReady=false',
    ],
  ])('%s: %s', (reason, message, spec, expected) => {
    expect(warnedTrouble(pod({}, spec), { reason, message })).toEqual({ kind: 'other', reason, message: expected });
  });

  test('nothing is said of a pod that has begun, whatever stands in old Events', () => {
    expect(warnedTrouble(pod({ server: {} }), { reason: 'FailedMount', message: 'old' })).toBeUndefined();
    expect(warnedTrouble(pod(), undefined)).toBeUndefined();
  });
});
