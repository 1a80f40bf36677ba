import { expect, test } from '@jest/globals';
import { parsePod } from '../../../src/cluster/workloads/decide/pod-facts.ts';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import { MODEL_CONTAINER, SERVER_CONTAINER } from '../../../src/cluster/workloads/decide/object-names.ts';
import { readKubeLogs } from '../../../src/cluster/workloads/pod-logs.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import { kubeWorkload, podOf, type PodChoice } from './workload-fixtures.ts';

const END = { exitCode: 7, finishedAt: '2026-11-21T09:01:00Z' };
const ENDED: PodChoice = { ready: false, server: { state: { terminated: END } } };
const WAITS: PodChoice = { ready: false, server: { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: END } } };
const BACK: PodChoice = { server: { started: true, state: { running: {} }, lastState: { terminated: END } } };

/** Returns the lines read for a pod whose present server wrote `now`, and whose previous one wrote `before`. */
async function read(
  choice: PodChoice,
  output: { readonly now: string; readonly before: string },
  follow = false,
): Promise<readonly string[]> {
  const pod = parsePod(podOf(kubeWorkload(), choice));
  if (pod === undefined) throw new Error('No pod');
  async function* bytes(text: string) {
    yield new TextEncoder().encode(text);
  }
  const api: Pick<KubeApi, 'stream'> = {
    stream: async (_type, { query }) => ok(bytes(query['previous'] === 'true' ? output.before : output.now)),
  };
  const lines: string[] = [];
  for await (const { text } of readKubeLogs(api, pod, { tail: 20, follow }, new AbortController().signal)) lines.push(text);
  return lines;
}

test.each([
  ['runs again is that of the running one', BACK, 'hello', 'bye', ['hello']],
  ['waits to be restarted is that of the crashed one', WAITS, '', 'bye', ['bye']],
  ['has exited is its own', ENDED, 'bye', 'an older one', ['bye']],
  ['had exited when it was observed, and was restarted since, is that of the crashed one', ENDED, '', 'bye', ['bye']],
])('the log of a server that %s', async (_name, choice, now, before, lines) => {
  expect(await read(choice, { now, before })).toEqual(lines);
});

test('the log of a server that has exited is not followed into the next one', async () => {
  expect(await read(ENDED, { now: '', before: 'bye' }, true)).toEqual([]);
});

test.each([
  [MODEL_CONTAINER, { running: {} }, MODEL_CONTAINER],
  [MODEL_CONTAINER, { waiting: { reason: 'PodInitializing' } }, SERVER_CONTAINER],
  ['another', { running: {} }, SERVER_CONTAINER],
])('the log of a pod whose server has not started is that of the model fetcher, if that has: "%s" %j', async (name, state, container) => {
  const pod = parsePod(
    podOf(kubeWorkload(), { ready: false, server: { state: { waiting: {} } }, status: { initContainerStatuses: [{ name, state }] } }),
  );
  if (pod === undefined) throw new Error('No pod');
  const asked: unknown[] = [];
  const api: Pick<KubeApi, 'stream'> = {
    stream: async (_type, { query }) => {
      asked.push(query['container']);
      return fail('retry', 'ApiUnreachable', '');
    },
  };
  for await (const line of readKubeLogs(api, pod, { tail: 20, follow: false }, new AbortController().signal)) throw new Error(line.text);
  expect(asked).toEqual([container]);
});
