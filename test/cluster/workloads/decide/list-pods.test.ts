/** What is told of each pod. */
import { expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/ports.ts';
import { parsePod, prunePod } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import { listPods } from '../../../../src/cluster/workloads/decide/select-pods.ts';
import { CRASHED, kubeWorkload, podOf, type PodChoice } from '../workload-fixtures.ts';

const WORKLOAD = kubeWorkload();

/** As it is stored, and not as the server sends it. */
function listed(pod: KubeObject, hints?: Parameters<typeof listPods>[1]) {
  const facts = parsePod(prunePod(pod));
  if (facts === undefined) throw new Error('Not a pod');
  return listPods([facts], hints)[0];
}
const list = (choice: PodChoice) => listed(podOf(WORKLOAD, choice));

const UNREADY = { ready: false, server: { started: false, state: { waiting: { reason: 'ContainerCreating' } } } } as const;

test('a pod that is ready has its slot, its node and its age, and nothing to wait for', () => {
  expect(list({})).toEqual({
    name: 'svc-slot-primary-x',
    slot: 'primary',
    phase: 'Running',
    ready: true,
    terminating: false,
    restarts: 0,
    node: 'node1',
    createdAt: Date.parse('2026-11-21T09:00:01Z'),
    waiting: undefined,
  });
});

test.each([
  ['nothing says why', UNREADY, undefined],
  ['its image cannot be pulled', { ready: false, server: { state: { waiting: { reason: 'ImagePullBackOff' } } } }, 'ImagePullBackOff'],
  [
    'no node fits',
    { ready: false, status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] } },
    'Unschedulable',
  ],
  ['its server has crashed', CRASHED, 'Crashed'],
  [
    'its server was killed',
    { ...CRASHED, server: { ...CRASHED.server, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } } },
    'OutOfMemory',
  ],
  ['it was evicted', { ready: false, status: { phase: 'Failed', reason: 'Evicted', conditions: [] } }, 'Evicted'],
  ['it is being deleted', { ...CRASHED, deleting: true }, undefined],
] satisfies readonly (readonly [string, PodChoice, string | undefined])[])(
  'a pod that does not run because %s says so',
  (_why, choice, reason) => {
    const found = list(choice);
    expect(found).toMatchObject({ ready: false });
    expect(found?.waiting?.reason).toBe(reason);
  },
);

test('what Events say of a pod that never started is told by the leader, who reads them', () => {
  const pod = podOf(WORKLOAD, UNREADY);
  const warnings = new Map([[pod.metadata.uid ?? '', { reason: 'FailedMount' as const, message: 'secret "x" not found' }]]);
  expect(listed(pod, { warnings })?.waiting).toMatchObject({ reason: 'FailedMount' });
});

test('restarts are those of all containers, and a pod on its way out gets no requests', () => {
  const init = { name: 'model', restartCount: 2, state: { terminated: { exitCode: 0 } } };
  expect(
    list({ ...CRASHED, status: { initContainerStatuses: [init], containerStatuses: [{ name: 'server', restartCount: 3 }] } }),
  ).toMatchObject({
    restarts: 5,
  });
  expect(list({ deleting: true })).toMatchObject({ ready: false, terminating: true });
});

test('a pod whose labels, phase and node are not known is listed all the same', () => {
  const { metadata, spec } = podOf(WORKLOAD);
  const pod = {
    metadata: { ...metadata, labels: {} },
    spec: { ...(typeof spec === 'object' ? spec : {}), nodeName: undefined },
    status: { phase: 'New' },
  };
  expect(listed(pod)).toMatchObject({ slot: undefined, phase: 'Unknown', node: undefined, ready: false });
});
