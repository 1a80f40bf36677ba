import { expect, test } from '@jest/globals';
import { fetchingText, isFetching, readFetchLine } from '../../../../src/cluster/workloads/decide/waiting-reason.ts';
import { parsePod, type PodFacts } from '../../../../src/cluster/workloads/decide/pod-facts.ts';
import { transferText } from '../../../../src/cli/output/slot-progress.ts';
import { kubeWorkload, podOf, type PodChoice } from '../workload-fixtures.ts';

const init = (state: object, name = 'model'): PodChoice => ({
  ready: false,
  server: { state: { waiting: { reason: 'PodInitializing' } } },
  status: { phase: 'Pending', initContainerStatuses: [{ name, ready: false, restartCount: 0, state }] },
});
const RUNS = { running: { startedAt: '2026-11-21T09:00:02Z' } };

function pod(name: string, choice: PodChoice): PodFacts {
  const facts = parsePod(podOf(kubeWorkload(), { ...choice, name }));
  if (facts === undefined) throw new Error('No pod');
  return facts;
}

test.each([
  ['runs', init(RUNS), true],
  ['waits', init({ waiting: { reason: 'PodInitializing' } }), false],
  ['has ended', init({ terminated: { exitCode: 0 } }), false],
  ['is another one', init(RUNS, 'other'), false],
  ['is absent', {}, false],
  ['runs in a pod that is being deleted', { ...init(RUNS), deleting: true }, false],
])('a pod whose init container %s', (_name, choice, fetches) => {
  expect(isFetching(pod('a', choice))).toBe(fetches);
});

test.each([
  [0, 4096],
  [512, undefined],
  [1_288_490_189, 6_549_825_126],
  [5 * 2 ** 40, 5 * 2 ** 40],
  [2 ** 30, undefined],
])('a line about %d of %p bytes, as the init container writes it', (done, total) => {
  expect(readFetchLine(`org/model: part 1 of 2: ${transferText(done, total)}`)).toBe(transferText(done, total));
});

test.each([
  'error: cannot reach the Hub',
  'model: 12 of 40',
  'model: 1.2 GiB of 6.1 GiB',
  'model: 1.2 GiB of 6.1 GiB (20 %) <script>',
  `${'x'.repeat(3000)}: 1 B`,
  '',
])('another line, %p, is not shown', (line) => {
  expect(readFetchLine(line)).toBeUndefined();
});

test('what a workload is fetching', () => {
  const pods = ['a', 'b', 'c'].map((name) => pod(name, init(RUNS)));
  const opening = 'Its pods are fetching and verifying the model';
  expect(fetchingText([pod('a', {})], new Map([['uid-of-a', '1 B']]))).toBeUndefined();
  expect(fetchingText(pods, undefined)).toBe(opening);
  expect(fetchingText(pods, new Map([['uid-of-b', '1 GiB of 2 GiB (50 %)']]))).toBe(`${opening}: 1 GiB of 2 GiB (50 %)`);
  const two = new Map([
    ['uid-of-a', '1 GiB of 2 GiB (50 %)'],
    ['uid-of-c', '1.5 GiB of 2 GiB (75 %)'],
    ['uid-of-gone', '2 B'],
  ]);
  expect(fetchingText(pods, two)).toBe(`${opening}: 1 GiB of 2 GiB (50 %), 1.5 GiB of 2 GiB (75 %)`);
});
