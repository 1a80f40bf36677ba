import { describe, expect, test } from '@jest/globals';
import { isActedOn, isServingChange, parseDeployment, parsePod } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { isCrashed } from '../../../../src/cluster/workloads/decide/kubelet-restarts.ts';
import { derivePhase, observeOrphanedPods } from '../../../../src/cluster/workloads/decide/workload-phase.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { context, kubeWorkload, podOf, stored, type PodChoice } from '../workload-fixtures.ts';

const WORKLOAD = kubeWorkload();
const END = { exitCode: 7, reason: 'Error', finishedAt: '2026-11-21T09:01:00Z' };
const STARTED = Date.parse('2026-11-21T09:00:05Z');

const pods = (...choices: readonly PodChoice[]) => choices.flatMap((choice) => parsePod(podOf(WORKLOAD, choice)) ?? []);

function phaseOf(...choices: readonly PodChoice[]) {
  const facts = parseDeployment(stored(kubeObjects(WORKLOAD, context()).deployment));
  if (facts === undefined) throw new Error('No Deployment');
  return derivePhase(facts, pods(...choices));
}

/** The server crashed once and was restarted; `started`: whether it has passed its startup probe. */
const restarted = (started: boolean): PodChoice => ({
  ready: false,
  server: { restartCount: 1, started, state: { running: { startedAt: '2026-11-21T09:01:01Z' } }, lastState: { terminated: END } },
});
const backOff: PodChoice = {
  ready: false,
  server: { restartCount: 2, started: false, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: END } },
};

describe('a workload', () => {
  test('without pods is created', () => {
    expect(phaseOf()).toEqual({ phase: 'created', startedAt: undefined, endpoints: [], replicas: { present: 0, ready: 0 } });
  });

  test('runs as soon as one server runs, and has an endpoint when that server is ready', () => {
    expect(phaseOf({ ready: false })).toMatchObject({
      phase: 'running',
      startedAt: STARTED,
      endpoints: [],
      replicas: { present: 1, ready: 0 },
    });
    expect(phaseOf({})).toMatchObject({
      phase: 'running',
      endpoints: [{ host: '10.0.0.1', port: 8080 }],
      replicas: { present: 1, ready: 1 },
    });
  });

  test('has the endpoints of all pods that are ready and not terminating', () => {
    const all = phaseOf(
      { name: 'b', ip: '10.0.0.2' },
      { name: 'a', ip: '10.0.0.1' },
      { name: 'c', ip: '10.0.0.3', deleting: true },
      { name: 'd', ip: '10.0.0.4', ready: false },
    );
    expect(all).toMatchObject({ endpoints: [{ host: '10.0.0.1' }, { host: '10.0.0.2' }], replicas: { present: 3, ready: 2 } });
  });

  test('whose server exited is created until kubelet restarts it, and keeps the exit from then on', () => {
    const exit = { code: 7, outOfMemory: false, at: Date.parse(END.finishedAt) };
    const created = { phase: 'created', startedAt: undefined, endpoints: [], exit };
    expect(phaseOf({ ready: false, server: { state: { terminated: END } } })).toMatchObject(created);
    expect(phaseOf(backOff)).toMatchObject(created);
    expect(phaseOf(backOff)).not.toHaveProperty('waitingReason');
    expect(phaseOf(restarted(false))).toMatchObject({ phase: 'running', endpoints: [], exit });
    expect(phaseOf(restarted(true))).toMatchObject({ phase: 'running', endpoints: [], exit });
    expect(phaseOf({ ...restarted(true), ready: true })).toMatchObject({ phase: 'running', endpoints: [{ host: '10.0.0.1' }], exit });
  });

  test('that crashed reports what keeps its own pod from restarting, but nothing about other pods', () => {
    const waiting = (reason: string): PodChoice => ({
      ready: false,
      server: { state: { waiting: { reason } }, lastState: { terminated: END } },
    });
    expect(phaseOf(waiting('ErrImageNeverPull'))).toMatchObject({ phase: 'created', exit: { code: 7 }, waitingReason: { kind: 'image' } });
    expect(phaseOf(waiting('RunContainerError'))).not.toHaveProperty('waitingReason');
    expect(phaseOf(backOff, { ...waiting('ErrImageNeverPull'), name: 'other' })).not.toHaveProperty('waitingReason');
  });

  test('distinguishes two exits within one second', () => {
    const endOf = (containerID: string) => phaseOf({ ready: false, server: { state: { terminated: { ...END, containerID } } } }).exit;
    expect(endOf('containerd://1')).toMatchObject({ at: endOf('containerd://2')?.at, container: 'containerd://1' });
  });

  test('reports the last lines of its server', () => {
    const message = 'warning: no GPU\n\nerror: invalid argument: --nonsense\nusage: llama-server [options]\n';
    const lastLines = 'error: invalid argument: --nonsense / usage: llama-server [options]';
    expect(phaseOf({ ready: false, server: { state: { terminated: { ...END, message } } } }).exit?.message).toBe(lastLines);
  });

  test('keeps running while another pod is ready', () => {
    const both = phaseOf(backOff, { name: 'other' });
    expect(both).toMatchObject({ phase: 'running', replicas: { present: 2, ready: 1 } });
    expect(both).not.toHaveProperty('exit');
  });

  test('with several pods and none ready reports how the newest exited, until that one is back', () => {
    const slow: PodChoice = { name: 'slow', ready: false };
    expect(phaseOf(backOff, slow)).toMatchObject({ phase: 'running', exit: { code: 7 } });
    expect(phaseOf(backOff, { ...backOff, name: 'other' })).toMatchObject({ phase: 'created', exit: { code: 7 } });
    expect(phaseOf(restarted(true), slow)).not.toHaveProperty('exit');
    expect(phaseOf({ ...slow, name: 'a' }, { ...backOff, name: 'b' })).not.toHaveProperty('exit');
  });

  test.each<[string, PodChoice, string | undefined]>([
    ['one crashed', { ...backOff, name: 'b' }, 'A replica exited with code 7 and is being restarted'],
    ['one crashed and comes up again', { ...restarted(false), name: 'b' }, 'A replica exited with code 7 and is being restarted'],
    ['one is slow', { name: 'b', ready: false }, undefined],
    ['one is terminating', { ...backOff, name: 'b', deleting: true }, undefined],
    [
      'one has no image',
      { name: 'b', ready: false, server: { state: { waiting: { reason: 'ErrImageNeverPull', message: 'not present with pull policy' } } } },
      'The node cannot pull the image "registry.example/gguf@sha256:00": the image is not on the node, and its pull policy forbids pulling it',
    ],
    [
      'one finds no node',
      {
        name: 'b',
        ready: false,
        server: { state: undefined },
        status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
      },
      'The pod is held back by a scheduling gate; see "kubectl describe pod"',
    ],
  ])('with several pods reports why not all of them answer: %s', (_name, other, message) => {
    const both = phaseOf({}, other);
    expect(both).toMatchObject({ phase: 'running', replicas: { ready: 1 } });
    expect([both.missing?.message, both.waitingReason]).toEqual([message, undefined]);
  });

  test('is judged by its newest pod if none is ready', () => {
    expect(
      phaseOf({ name: 'new', ready: false, server: { started: false, state: { waiting: { reason: 'ContainerCreating' } } } }, backOff),
    ).toMatchObject({ phase: 'created' });
  });

  test('is not judged by a terminating pod', () => {
    expect(phaseOf({ deleting: true, ready: false, server: { state: { terminated: END } } })).toMatchObject({
      phase: 'created',
      replicas: { present: 0 },
    });
  });

  test('replaces pods that crashed and are not back', () => {
    const crashed = pods(restarted(false), backOff, restarted(true), {}, { deleting: true, ...backOff }).map(isCrashed);
    expect(crashed).toEqual([true, true, false, false, false]);
  });
});

test('pods without their Deployment are stopping, unless all are over or nobody knows whose they are', () => {
  const orphaned = (...left: ReturnType<typeof pods>) => observeOrphanedPods(WorkloadId.parse('w1'), left)?.phase;
  const [running] = pods({});
  if (running === undefined) throw new Error('No pod');
  expect(orphaned(running)).toBe('stopping');
  expect(orphaned()).toBeUndefined();
  expect(orphaned(...pods({ ready: false, status: { phase: 'Failed', reason: 'Evicted' } }))).toBeUndefined();
  expect(orphaned({ ...running, metadata: { ...running.metadata, labels: {} } })).toBeUndefined();
});

test.each<[string, PodChoice | undefined, PodChoice, boolean]>([
  ['a new pod', undefined, { ready: false }, false],
  ['a pod that pulls its image', { ready: false, status: { phase: 'Pending' } }, { ready: false }, false],
  ['a pod that becomes ready', { ready: false }, {}, true],
  ['a ready pod of a list', undefined, {}, true],
  ['a ready pod with another message', {}, { status: { message: 'evicted soon' } }, false],
  ['a pod that fails its probe', {}, { ready: false }, true],
  ['a ready pod that is deleted', {}, { deleting: true }, true],
  ['a pod that ends', { deleting: true }, { deleting: true, ready: false }, false],
])('%s: whether the loop is woken at once', (_case, before, after, expected) => {
  expect(isServingChange(before && podOf(WORKLOAD, before), podOf(WORKLOAD, after))).toBe(expected);
});

describe('isActedOn()', () => {
  const acted = (generation: number | undefined, status: unknown): boolean =>
    isActedOn({ metadata: { name: 'd', ...(generation === undefined ? {} : { generation }) }, status });

  test.each([
    ['the cluster has seen the newest spec', 3, { observedGeneration: 3 }, true],
    ['it has seen an older one', 3, { observedGeneration: 2 }, false],
    ['it has seen none, and may be about to create pods', 1, {}, false],
    ['there is no status', 1, undefined, false],
    ['the status cannot be read', 1, { observedGeneration: 'many' }, false],
    ['the object has no generation', undefined, { observedGeneration: 1 }, true],
  ])('%s', (_what, generation, status, expected) => {
    expect(acted(generation, status)).toBe(expected);
  });
});
