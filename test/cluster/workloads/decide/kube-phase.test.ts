import { describe, expect, test } from '@jest/globals';
import { parseDeployment, parsePod } from '../../../../src/cluster/workloads/decide/kube-facts.ts';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/kube-objects.ts';
import { derivePhase, isCrashed } from '../../../../src/cluster/workloads/decide/kube-phase.ts';
import { context, kubeWorkload, podOf, stored } from '../kube-fixtures.ts';
import type { PodChoice } from '../kube-fixtures.ts';

const WORKLOAD = kubeWorkload();
const END = { exitCode: 7, reason: 'Error', finishedAt: '2026-11-21T09:01:00Z' };
const STARTED = Date.parse('2026-11-21T09:00:05Z');

const pods = (...choices: readonly PodChoice[]) => choices.flatMap((choice) => parsePod(podOf(WORKLOAD, choice)) ?? []);

function doing(...choices: readonly PodChoice[]) {
  const facts = parseDeployment(stored(kubeObjects(WORKLOAD, context()).deployment));
  if (facts === undefined) throw new Error('No Deployment');
  return derivePhase(facts, pods(...choices));
}

/** The server crashed once; kubelet started it again, and it has or has not come up. */
const again = (started: boolean): PodChoice => ({
  ready: false,
  server: { restartCount: 1, started, state: { running: { startedAt: '2026-11-21T09:01:01Z' } }, lastState: { terminated: END } },
});
const backOff: PodChoice = {
  ready: false,
  server: { restartCount: 2, started: false, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: END } },
};

describe('a workload', () => {
  test('without pods is created', () => {
    expect(doing()).toEqual({ phase: 'created', startedAt: undefined, endpoints: [], replicas: { present: 0, ready: 0 } });
  });

  test('runs as soon as one server does, and has an endpoint when that one is ready', () => {
    expect(doing({ ready: false })).toMatchObject({
      phase: 'running',
      startedAt: STARTED,
      endpoints: [],
      replicas: { present: 1, ready: 0 },
    });
    expect(doing({})).toMatchObject({
      phase: 'running',
      endpoints: [{ host: '10.0.0.1', port: 8080 }],
      replicas: { present: 1, ready: 1 },
    });
  });

  test('has the endpoints of all pods that are ready and stay', () => {
    const all = doing(
      { name: 'b', ip: '10.0.0.2' },
      { name: 'a', ip: '10.0.0.1' },
      { name: 'c', ip: '10.0.0.3', deleting: true },
      { name: 'd', ip: '10.0.0.4', ready: false },
    );
    expect(all).toMatchObject({ endpoints: [{ host: '10.0.0.1' }, { host: '10.0.0.2' }], replicas: { present: 3, ready: 2 } });
  });

  test('of which the server ended is created until kubelet starts it again, and tells how it ended from then on', () => {
    const exit = { code: 7, outOfMemory: false, at: Date.parse(END.finishedAt) };
    const created = { phase: 'created', startedAt: undefined, endpoints: [], exit };
    expect(doing({ ready: false, server: { state: { terminated: END } } })).toMatchObject(created);
    expect(doing(backOff)).toMatchObject(created);
    expect(doing(backOff)).not.toHaveProperty('waitingReason');
    expect(doing(again(false))).toMatchObject({ phase: 'running', endpoints: [], exit });
    expect(doing(again(true))).toMatchObject({ phase: 'running', endpoints: [], exit });
    expect(doing({ ...again(true), ready: true })).toMatchObject({ phase: 'running', endpoints: [{ host: '10.0.0.1' }], exit });
  });

  test('that crashed tells what keeps its own pod from coming back, and nothing of others', () => {
    const waiting = (reason: string): PodChoice => ({
      ready: false,
      server: { state: { waiting: { reason } }, lastState: { terminated: END } },
    });
    expect(doing(waiting('ErrImageNeverPull'))).toMatchObject({ phase: 'created', exit: { code: 7 }, waitingReason: { kind: 'image' } });
    expect(doing(waiting('RunContainerError'))).not.toHaveProperty('waitingReason');
    expect(doing(backOff, { ...waiting('ErrImageNeverPull'), name: 'other' })).not.toHaveProperty('waitingReason');
  });

  test('tells two ends within one second apart', () => {
    const endOf = (containerID: string) => doing({ ready: false, server: { state: { terminated: { ...END, containerID } } } }).exit;
    expect(endOf('containerd://1')).toMatchObject({ at: endOf('containerd://2')?.at, container: 'containerd://1' });
  });

  test('tells the last words of its server', () => {
    const message = 'warning: no GPU\n\nerror: invalid argument: --nonsense\nusage: llama-server [options]\n';
    const words = 'error: invalid argument: --nonsense / usage: llama-server [options]';
    expect(doing({ ready: false, server: { state: { terminated: { ...END, message } } } }).exit?.message).toBe(words);
  });

  test('runs on while another pod is ready', () => {
    const both = doing(backOff, { name: 'other' });
    expect(both).toMatchObject({ phase: 'running', replicas: { present: 2, ready: 1 } });
    expect(both).not.toHaveProperty('exit');
  });

  test('with several pods of which none is ready tells how the newest ended, while that one is not back', () => {
    const slow: PodChoice = { name: 'slow', ready: false };
    expect(doing(backOff, slow)).toMatchObject({ phase: 'running', exit: { code: 7 } });
    expect(doing(backOff, { ...backOff, name: 'other' })).toMatchObject({ phase: 'created', exit: { code: 7 } });
    expect(doing(again(true), slow)).not.toHaveProperty('exit');
    expect(doing({ ...slow, name: 'a' }, { ...backOff, name: 'b' })).not.toHaveProperty('exit');
  });

  test.each<[string, PodChoice, string | undefined]>([
    ['one crashed', { ...backOff, name: 'b' }, 'A replica exited with code 7 and is being restarted'],
    ['one crashed and comes up again', { ...again(false), name: 'b' }, 'A replica exited with code 7 and is being restarted'],
    ['one is slow', { name: 'b', ready: false }, undefined],
    ['one is told to end', { ...backOff, name: 'b', deleting: true }, undefined],
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
  ])('of several pods says why not all answer: %s', (_name, other, message) => {
    const both = doing({}, other);
    expect(both).toMatchObject({ phase: 'running', replicas: { ready: 1 } });
    expect([both.missing?.message, both.waitingReason]).toEqual([message, undefined]);
  });

  test('is judged by its newest pod where none is ready', () => {
    expect(
      doing({ name: 'new', ready: false, server: { started: false, state: { waiting: { reason: 'ContainerCreating' } } } }, backOff),
    ).toMatchObject({ phase: 'created' });
  });

  test('of which a pod ends is not judged by that one', () => {
    expect(doing({ deleting: true, ready: false, server: { state: { terminated: END } } })).toMatchObject({
      phase: 'created',
      replicas: { present: 0 },
    });
  });

  test('gets those pods replaced that crashed and are not back', () => {
    const crashed = pods(again(false), backOff, again(true), {}, { deleting: true, ...backOff }).map(isCrashed);
    expect(crashed).toEqual([true, true, false, false, false]);
  });
});
