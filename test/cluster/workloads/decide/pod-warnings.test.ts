/** Events about pods that do not start, with messages of kubelets of 1.20 and of present ones. */
import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { parsePod, type PodFacts } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import {
  hasNotStarted,
  isStuck,
  podsIn,
  selectWarnings,
  warningReason,
  type PodWarning,
} from '../../../../src/cluster/workloads/decide/pod-warnings.ts';
import { kubeWorkload, podOf, type PodChoice } from '../workload-fixtures.ts';

const CREATING = { ready: false, started: false, state: { waiting: { reason: 'ContainerCreating' } } };
const UID = 'uid-of-svc-slot-primary-x';

function pod(choice: PodChoice = {}, spec: object = {}): PodFacts {
  const object = podOf(kubeWorkload(), { ready: false, server: CREATING, ...choice });
  const facts = parsePod({ ...object, spec: { ...(typeof object['spec'] === 'object' ? object['spec'] : {}), ...spec } });
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

const CLAIM = { volumes: [{ name: 'models', persistentVolumeClaim: { claimName: 'models' } }] };

describe('a pod has not started', () => {
  const init = (state: object, lastState?: object) => ({ status: { initContainerStatuses: [{ name: 'model', state, lastState }] } });
  test.each<[string, boolean, PodFacts]>([
    ['while its container is created', true, pod()],
    ['while its kubelet has reported nothing', true, pod({ status: { containerStatuses: [] } })],
    ['while its init containers are to come', true, pod(init({ waiting: { reason: 'PodInitializing' } }))],
    ['but no node has taken it', false, pod({}, { nodeName: undefined })],
    ['but an init container runs', false, pod(init({ running: {} }))],
    ['but an init container is done', false, pod(init({ terminated: { exitCode: 0 } }))],
    ['but an init container failed before', false, pod(init({ waiting: { reason: 'PodInitializing' } }, { terminated: { exitCode: 1 } }))],
    ['but its status explains why', false, pod({ server: { ...CREATING, state: { waiting: { reason: 'ImagePullBackOff' } } } })],
    ['but it is terminating', false, pod({ deleting: true })],
    ['but it is over', false, pod({ status: { phase: 'Failed' } })],
    ['but it runs', false, pod({ server: {} })],
  ])('%s: %s', (_name, expected, facts) => {
    expect(hasNotStarted(facts)).toBe(expected);
  });

  test('and is stuck after ten seconds', () => {
    const createdAt = Date.parse(pod().metadata.creationTimestamp);
    expect([9000, 11_000].map((after) => isStuck(pod(), createdAt + after))).toEqual([false, true]);
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
const read = (...events: readonly KubeObject[]) => selectWarnings(events, new Set([UID]), undefined)?.get(UID)?.message;
const TIMEOUT =
  'Unable to attach or mount volumes: unmounted volumes=[models], unattached volumes=[tmp models]: timed out waiting for the condition';

describe('among the Events of a pod', () => {
  test.each<[string, string | undefined, readonly KubeObject[]]>([
    ['the newest is selected', 'new', [event('old', '01:00'), event('new', '02:00')]],
    ['at any position', 'new', [event('new', '02:00'), event('old', '01:00')]],
    ['the cause is preferred to a timeout', 'cause', [event('cause', '01:00'), event(TIMEOUT, '02:00')]],
    ['and in the other order', 'cause', [event(TIMEOUT, '02:00'), event('cause', '01:00')]],
    ['a timeout is better than nothing', TIMEOUT, [event(TIMEOUT, '02:00')]],
    [
      'the time may be in a series',
      'b',
      [event('a', '01:00'), event('b', '00:30', { series: { lastObservedTime: '2026-11-22T09:05:00Z' } })],
    ],
    [
      'or in the time of the event',
      'b',
      [event('a', '01:00'), event('b', '00:00', { lastTimestamp: null, eventTime: '2026-11-22T09:03:00Z' })],
    ],
    ['those of other pods are ignored', undefined, [event('a', '01:00', { involvedObject: { kind: 'Pod', uid: 'other' } })]],
    ['other reasons are ignored', undefined, [event('a', '01:00', { reason: 'BackOff' })]],
    ['invalid Events are ignored', undefined, [{ metadata: { name: 'x' }, involvedObject: 'y' }]],
  ])('%s', (_name, expected, events) => {
    expect(read(...events)).toBe(expected);
  });

  test('the ids of attempts are removed, so that all attempts have the same message', () => {
    const attempt = (id: string) =>
      event(`Failed to create pod sandbox: rpc error: failed to setup network for sandbox "${id.repeat(64)}": no CNI`, '01:00', {
        reason: 'FailedCreatePodSandBox',
      });
    expect(read(attempt('a'))).toBe('Failed to create pod sandbox: rpc error: failed to setup network for sandbox: no CNI');
    expect(read(attempt('a'))).toBe(read(attempt('b')));
  });

  test('the map is the same as long as the messages are', () => {
    const before = selectWarnings([event('a', '01:00')], new Set([UID]), undefined);
    expect(selectWarnings([event('a', '02:00')], new Set([UID]), before)).toBe(before);
    expect(selectWarnings([event('b', '02:00')], new Set([UID]), before)).not.toBe(before);
    expect(selectWarnings([], new Set([UID]), before)).toBeUndefined();
  });
});

test('podsIn() returns the pods that Events are about', () => {
  expect([...podsIn([event('a', '01:00'), event('b', '02:00'), { metadata: { name: 'x' } }])]).toEqual([UID]);
});

describe('as a message for users', () => {
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
      'Node "node1" cannot mount the volume "pv-7" of the claim "models" and will retry: path "/nowhere/models" does not exist',
    ],
    [
      'FailedMount',
      'MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32\nMounting command: mount\nOutput: mount.nfs: access denied by server while mounting nas:/models to /var/lib/kubelet/pods/0b0a7a6e-7a1d-4e3a-9a0e-6f2f9d8f1c11/volumes/kubernetes.io~nfs/nfs\n',
      CLAIM,
      'Node "node1" cannot mount the volume "nfs" of the claim "models" and will retry: Output: mount.nfs: access denied by server while mounting nas:/models to its mount point in the pod',
    ],
    ['FailedMount', TIMEOUT, CLAIM, `Node "node1" cannot mount the pod's volumes and will retry: ${TIMEOUT}`],
    [
      'FailedAttachVolume',
      'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can\'t be attached to another',
      CLAIM,
      'Node "node1" cannot attach the volume "pvc-1" of the claim "models", which another node uses. It becomes free when the pod there has ended; to share a claim between nodes, use the access mode "ReadWriteMany" ("storage.accessModes")',
    ],
    [
      'FailedMount',
      'MountVolume.SetUp failed for volume "credentials" : secret "credentials" not found',
      { volumes: [{ name: 'models', persistentVolumeClaim: { claimName: 'models' } }, { name: 'credentials' }] },
      'Node "node1" cannot mount the volume "credentials" and will retry: secret "credentials" not found',
    ],
    [
      'FailedMount',
      'MountVolume.SetUp failed for volume "pv-7" : it is broken',
      { volumes: ['a', 'b'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })) },
      'Node "node1" cannot mount the volume "pv-7" and will retry: it is broken',
    ],
    [
      'NetworkNotReady',
      'network is not ready: container runtime network not ready: NetworkReady=false',
      {},
      'Node "node1" cannot set up the pod and will retry: network is not ready: container runtime network not ready: NetworkReady=false',
    ],
  ])('%s: %s', (reason, message, spec, expected) => {
    expect(warningReason(pod({}, spec), { reason, message })).toEqual({ kind: 'other', reason, message: expected });
  });

  test('a pod that has started has no reason, despite old Events', () => {
    expect(warningReason(pod({ server: {} }), { reason: 'FailedMount', message: 'old' })).toBeUndefined();
    expect(warningReason(pod(), undefined)).toBeUndefined();
  });
});
