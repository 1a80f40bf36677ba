/** Events are asked for while a pod is stuck and this replica leads, and never else. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EVENTS } from '../../../src/cluster/client/resource-types.ts';
import { parsePod } from '../../../src/cluster/workloads/decide/kube-facts.ts';
import type { PodFacts } from '../../../src/cluster/workloads/decide/kube-facts.ts';
import { createWarningPoller } from '../../../src/cluster/workloads/kube-warning-poller.ts';
import type { WarningPoller } from '../../../src/cluster/workloads/kube-warning-poller.ts';
import { startFakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import type { FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { kubeWorkload, podOf } from './kube-fixtures.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';

const CREATING = { ready: false, started: false, state: { waiting: { reason: 'ContainerCreating' } } };
const LOOK_MS = 20;
const STUCK_MS = 60_000;

let fake: FakeKubeApi;
let pods: readonly PodFacts[];
let ageMs: number;
let wakes: number;
let term: AbortController;
let ended: AbortController;
let reader: WarningPoller;

function pod(server: Readonly<Record<string, unknown>>): PodFacts {
  const facts = parsePod(podOf(kubeWorkload(), { ready: false, server }));
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

function tell(message: string, type = 'Warning', reason = 'FailedMount'): void {
  const involvedObject = { kind: 'Pod', name: 'svc-slot-primary-x', uid: pod(CREATING).metadata.uid };
  const event = { involvedObject, type, reason, message, lastTimestamp: '2026-11-21T09:00:30Z' };
  fake.put(EVENTS, 'default', { metadata: { name: reason.toLowerCase() }, ...event });
}

const said = () => [...(reader.current()?.values() ?? [])].map(({ message }) => message);
const asked = () => fake.faults.requests.filter(({ resource }) => resource === 'events').length;
/** So many looks later. */
const later = async (looks = 5) => await new Promise((resolve) => setTimeout(resolve, looks * LOOK_MS));

beforeEach(async () => {
  fake = await startFakeKubeApi();
  pods = [pod(CREATING)];
  ageMs = STUCK_MS;
  wakes = 0;
  term = new AbortController();
  ended = new AbortController();
  const made = Date.parse(pod(CREATING).metadata.creationTimestamp);
  const api = await connectToFake(fake);
  reader = createWarningPoller({ api, pods: () => pods, term: () => term.signal, now: () => made + ageMs, lookMs: LOOK_MS });
  reader.follow(() => (wakes += 1), ended.signal);
});

afterEach(async () => {
  ended.abort();
  await fake.close();
});

test('what is said of a stuck pod is told once, and forgotten when the pod begins', async () => {
  tell('no disk');
  await eventually('the warning', async () => (said().length > 0 ? true : undefined));
  expect(said()).toEqual(['no disk']);
  await later();
  expect([wakes, asked()]).toEqual([1, 2]);
  pods = [pod({ state: { running: { startedAt: '2026-11-21T09:00:05Z' } } })];
  await eventually('it is forgotten', async () => (said().length === 0 ? true : undefined));
  await later();
  expect([wakes, asked()]).toEqual([2, 2]);
});

test('of the same pods it is asked again after a while, of others at once', async () => {
  await eventually('a question', async () => (asked() === 1 ? true : undefined));
  tell('no disk');
  await later();
  expect([asked(), said()]).toEqual([1, []]);
  ageMs += 31_000;
  await eventually('the warning', async () => (said().length > 0 ? true : undefined));
  const [one] = pods;
  pods = pods.concat(one === undefined ? [] : { ...one, metadata: { ...one.metadata, uid: 'another' } });
  await eventually('a question of both', async () => (asked() === 5 ? true : undefined));
});

test('what was said is no longer told when the pod pulls its image', async () => {
  tell('no disk');
  await eventually('the warning', async () => (said().length > 0 ? true : undefined));
  tell('Pulling image "x"', 'Normal', 'Pulling');
  ageMs += 31_000;
  await eventually('it is forgotten', async () => (said().length === 0 ? true : undefined));
  expect(wakes).toBe(2);
});

test('nothing is asked of pods that have only just been made', async () => {
  ageMs = 5000;
  await later();
  expect(asked()).toBe(0);
});

test('nothing is asked by a replica that does not lead', async () => {
  term.abort();
  await later();
  expect(asked()).toBe(0);
});

test('a refusal changes nothing', async () => {
  tell('no disk');
  await eventually('the warning', async () => (said().length > 0 ? true : undefined));
  fake.faults.answer({ verb: 'list', resource: 'events' }, { status: 403 }, 1);
  ageMs += 31_000;
  await eventually('another question', async () => (asked() === 3 ? true : undefined));
  await later();
  expect(said()).toEqual(['no disk']);
});
