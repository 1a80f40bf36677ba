import { expect, test } from '@jest/globals';
import { parsePod } from '../../../src/cluster/workloads/decide/kube-facts.ts';
import { readKubeLogs } from '../../../src/cluster/workloads/kube-logs.ts';
import { ok } from '../../../src/schema/failure.ts';
import { kubeWorkload, podOf, type PodChoice } from './kube-fixtures.ts';

const END = { exitCode: 7, finishedAt: '2026-11-21T09:01:00Z' };
const ENDED: PodChoice = { ready: false, server: { state: { terminated: END } } };
const WAITS: PodChoice = { ready: false, server: { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: END } } };
const BACK: PodChoice = { server: { started: true, state: { running: {} }, lastState: { terminated: END } } };

/** What is read of a pod whose present server and the one before it said this. */
async function read(
  choice: PodChoice,
  said: { readonly now: string; readonly before: string },
  follow = false,
): Promise<readonly string[]> {
  const pod = parsePod(podOf(kubeWorkload(), choice));
  if (pod === undefined) throw new Error('No pod');
  async function* bytes(text: string) {
    yield new TextEncoder().encode(text);
  }
  const api = { namespace: 'default', stream: async (path: string) => ok(bytes(path.includes('previous=true') ? said.before : said.now)) };
  const lines: string[] = [];
  for await (const { text } of readKubeLogs(api, pod, { tail: 20, follow }, new AbortController().signal)) lines.push(text);
  return lines;
}

test.each([
  ['runs again: of the one that runs', BACK, 'hello', 'bye', ['hello']],
  ['waits to be started again: of the one that crashed', WAITS, '', 'bye', ['bye']],
  ['has ended: of that one', ENDED, 'bye', 'an older one', ['bye']],
  ['had ended when it was seen, and was started again since: of the one that crashed', ENDED, '', 'bye', ['bye']],
])('the log of a server that %s', async (_name, choice, now, before, lines) => {
  expect(await read(choice, { now, before })).toEqual(lines);
});

test('the log of a server that has ended is not followed into another one', async () => {
  expect(await read(ENDED, { now: '', before: 'bye' }, true)).toEqual([]);
});
