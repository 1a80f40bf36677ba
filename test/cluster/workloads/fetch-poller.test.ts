/** Logs are requested only while a pod fetches its model and this replica is the leader. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { fail, ok, type Result } from '../../../src/schema/words/failure.ts';
import type { StreamOptions } from '../../../src/cluster/client/ports.ts';
import { parsePod, type PodFacts } from '../../../src/cluster/workloads/decide/pod-facts.ts';
import { createFetchPoller } from '../../../src/cluster/workloads/pollers.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';
import { kubeWorkload, podOf } from './workload-fixtures.ts';

const LOOK_MS = 20;
const LINE = 'file.gguf: 1 GiB of 2 GiB (50 %)';

let logs: Map<string, Result<string>>;
let pods: readonly PodFacts[];
let requests: StreamOptions[];
let wakes: number;
let term: AbortController;
let ended: AbortController;
let poller: ReturnType<typeof createFetchPoller>;

function fetchingPod(name: string): PodFacts {
  const initContainerStatuses = [{ name: 'model', ready: false, restartCount: 0, state: { running: {} } }];
  const server = { state: { waiting: { reason: 'PodInitializing' } } };
  const facts = parsePod(podOf(kubeWorkload(), { name, ready: false, server, status: { phase: 'Pending', initContainerStatuses } }));
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

async function* bytes(text: string) {
  yield new TextEncoder().encode(text);
}

const shown = () => Object.fromEntries(poller.current() ?? []);
/** Resolves after this many looks. */
const later = async (looks = 5) => await new Promise((resolve) => setTimeout(resolve, looks * LOOK_MS));

beforeEach(() => {
  logs = new Map([['a', ok(`${LINE}\n`)]]);
  pods = [fetchingPod('a')];
  requests = [];
  wakes = 0;
  term = new AbortController();
  ended = new AbortController();
  const api = {
    stream: async (_type: unknown, options: StreamOptions) => {
      requests.push(options);
      const log = logs.get(options.name ?? '') ?? ok('');
      return log.ok ? ok(bytes(log.value)) : log;
    },
  };
  poller = createFetchPoller({ api, pods: () => pods, term: () => term.signal, lookMs: LOOK_MS });
  poller.follow(() => (wakes += 1), ended.signal);
});

afterEach(() => ended.abort());

test('reports what the pods have fetched, wakes for each change, and ends with the fetching', async () => {
  pods = [fetchingPod('a'), fetchingPod('b')];
  await eventually('the progress', async () => (poller.current() === undefined ? undefined : true));
  expect(shown()).toEqual({ 'uid-of-a': '1 GiB of 2 GiB (50 %)' });
  expect(requests[0]).toMatchObject({ name: 'a', subresource: 'log', query: { container: 'model', follow: 'false', tailLines: '1' } });
  await later();
  expect(wakes).toBe(1);
  logs.set('b', ok('file.gguf: 1.8 GiB of 2 GiB (90 %)\n'));
  await eventually('the other pod', async () => (poller.current()?.size === 2 ? true : undefined));
  expect(wakes).toBe(2);
  pods = [];
  await eventually('nothing', async () => (poller.current() === undefined ? true : undefined));
  const sent = requests.length;
  await later();
  expect([wakes, requests.length]).toEqual([3, sent]);
});

test('keeps the last progress while the log cannot be read, or says something else', async () => {
  await eventually('the progress', async () => (poller.current() === undefined ? undefined : true));
  logs.set('a', fail('retry', 'RuntimeUnreachable', 'The kubelet does not answer'));
  await later();
  logs.set('a', ok('retrying in 2 s\n'));
  await later();
  expect([shown(), wakes]).toEqual([{ 'uid-of-a': '1 GiB of 2 GiB (50 %)' }, 1]);
});

test('requests nothing while another replica is the leader', async () => {
  term.abort();
  await later();
  const before = requests.length;
  await later();
  expect([poller.current(), requests.length]).toEqual([undefined, before]);
});
