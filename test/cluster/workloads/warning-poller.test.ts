/** Events are requested only while a pod is stuck and this replica is the leader. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EVENTS } from '../../../src/cluster/client/decide/resource-path.ts';
import { parsePod, type PodFacts } from '../../../src/cluster/workloads/decide/pod-facts.ts';
import { createWarningPoller } from '../../../src/cluster/workloads/pollers.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { kubeWorkload, podOf } from './workload-fixtures.ts';
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
let reader: ReturnType<typeof createWarningPoller>;

function pod(server: Readonly<Record<string, unknown>>): PodFacts {
  const facts = parsePod(podOf(kubeWorkload(), { ready: false, server }));
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

function publish(message: string, type = 'Warning', reason = 'FailedMount'): void {
  const involvedObject = { kind: 'Pod', name: 'svc-slot-primary-x', uid: pod(CREATING).metadata.uid };
  const event = { involvedObject, type, reason, message, lastTimestamp: '2026-11-21T09:00:30Z' };
  fake.put(EVENTS, 'default', { metadata: { name: reason.toLowerCase() }, ...event });
}

const messages = () => [...(reader.current()?.values() ?? [])].map(({ message }) => message);
const requests = () => fake.faults.requests.filter(({ resource }) => resource === 'events').length;
/** Resolves after this many looks. */
const later = async (looks = 5) => await new Promise((resolve) => setTimeout(resolve, looks * LOOK_MS));

beforeEach(async () => {
  fake = await startFakeKubeApi();
  pods = [pod(CREATING)];
  ageMs = STUCK_MS;
  wakes = 0;
  term = new AbortController();
  ended = new AbortController();
  const createdAt = Date.parse(pod(CREATING).metadata.creationTimestamp);
  const api = await connectToFake(fake);
  const clock = { now: () => ageMs, wallNow: () => createdAt + ageMs };
  reader = createWarningPoller({ api, pods: () => pods, term: () => term.signal, clock, lookMs: LOOK_MS });
  reader.follow(() => (wakes += 1), ended.signal);
});

afterEach(async () => {
  ended.abort();
  await fake.close();
});

test('reports warnings about a stuck pod once, and drops them when the pod starts', async () => {
  publish('no disk');
  await eventually('the warning', async () => (messages().length > 0 ? true : undefined));
  expect(messages()).toEqual(['no disk']);
  await later();
  expect([wakes, requests()]).toEqual([1, 2]);
  pods = [pod({ state: { running: { startedAt: '2026-11-21T09:00:05Z' } } })];
  await eventually('no warning', async () => (messages().length === 0 ? true : undefined));
  await later();
  expect([wakes, requests()]).toEqual([2, 2]);
});

test('requests the Events of the same pods again after a while, and of others at once', async () => {
  await eventually('a request', async () => (requests() === 1 ? true : undefined));
  publish('no disk');
  await later();
  expect([requests(), messages()]).toEqual([1, []]);
  ageMs += 31_000;
  await eventually('the warning', async () => (messages().length > 0 ? true : undefined));
  const [one] = pods;
  pods = pods.concat(one === undefined ? [] : { ...one, metadata: { ...one.metadata, uid: 'another' } });
  await eventually('a request for both', async () => (requests() === 5 ? true : undefined));
});

test('drops warnings when the pod pulls its image', async () => {
  publish('no disk');
  await eventually('the warning', async () => (messages().length > 0 ? true : undefined));
  publish('Pulling image "x"', 'Normal', 'Pulling');
  ageMs += 31_000;
  await eventually('no warning', async () => (messages().length === 0 ? true : undefined));
  expect(wakes).toBe(2);
});

test('requests nothing for pods that were only just created', async () => {
  ageMs = 5000;
  await later();
  expect(requests()).toBe(0);
});

test('requests nothing while another replica is the leader', async () => {
  term.abort();
  await later();
  expect(requests()).toBe(0);
});

test('keeps the warnings after a forbidden request', async () => {
  publish('no disk');
  await eventually('the warning', async () => (messages().length > 0 ? true : undefined));
  fake.faults.answer({ verb: 'list', resource: 'events' }, { status: 403 }, 1);
  ageMs += 31_000;
  await eventually('another request', async () => (requests() === 3 ? true : undefined));
  await later();
  expect(messages()).toEqual(['no disk']);
});
