import { describe, expect, test } from '@jest/globals';
import {
  mergeTraffic,
  NO_HISTORY,
  rememberReport,
  wakeFor,
  type ReceivedReport,
} from '../../../../src/cluster/leadership/decide/merge-traffic.ts';
import { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import { factsOf, reportOf, type Pairs } from './traffic-fixture.ts';

const SEEN = 1_000_000;

function received(demand: Pairs, use: Pairs = {}, more: Partial<ReceivedReport> = {}): ReceivedReport {
  return { report: reportOf(demand, use), seenAt: SEEN, fresh: true, ...more };
}

/** Does what a replica does: each report is remembered when it arrives, and merged as long as it exists. */
function merge(local: ReturnType<typeof factsOf>, ...others: readonly ReceivedReport[]): ReturnType<typeof factsOf> {
  return mergeTraffic(local, others, others.reduce(rememberReport, NO_HISTORY));
}

describe('mergeTraffic()', () => {
  test.each<[string, ReturnType<typeof factsOf>, readonly ReceivedReport[], ReturnType<typeof factsOf>]>([
    ['without other replicas: the local traffic', factsOf({ chat: [1, 5] }, { w: [2, 6] }), [], factsOf({ chat: [1, 5] }, { w: [2, 6] })],
    [
      'only traffic of others',
      factsOf(),
      [received({ chat: [1, 50] }, { w: [2, 60] })],
      factsOf({ chat: [1, SEEN - 50] }, { w: [2, SEEN - 60] }),
    ],
    [
      'the sums of what is in flight and waits, and the latest times',
      factsOf({ chat: [1, SEEN - 10] }, { w: [2, SEEN - 90] }),
      [received({ chat: [4, 50] }, { w: [3, 60] }), received({ chat: [2, 70] }, { w: [1, 80] })],
      factsOf({ chat: [7, SEEN - 10] }, { w: [6, SEEN - 60] }),
    ],
    [
      'of a replica that is gone, only the times',
      factsOf({}, { w: [1, 5] }),
      [received({ chat: [4, 50] }, { w: [3, 60] }, { fresh: false })],
      factsOf({ chat: [0, SEEN - 50] }, { w: [1, SEEN - 60] }),
    ],
    [
      'different slots and workloads side by side',
      factsOf({ chat: [1, 5] }, { w: [1, 5] }),
      [received({ embed: [1, 0] }, { x: [0, 0] })],
      factsOf({ chat: [1, 5], embed: [1, SEEN] }, { w: [1, 5], x: [0, SEEN] }),
    ],
  ])('%s', (_what, local, others, expected) => {
    expect(merge(local, ...others)).toEqual(expected);
  });

  test('knows whose request waits elsewhere, and prefers the one that waits here', () => {
    const chat = SlotName.parse('chat');
    const others = [{ report: reportOf({ chat: [1, 50] }, {}, { chat: 'token:other' }), seenAt: SEEN, fresh: true }];
    const callerOf = (local: ReturnType<typeof factsOf>) => merge(local, ...others).demand.get(chat)?.caller;
    expect(callerOf(factsOf())).toBe('token:other');
    const own = { waiting: 1, waitingSince: SEEN - 5, lastAskedAt: SEEN - 5, caller: 'token:own' };
    expect(callerOf({ demand: new Map([[chat, own]]), workloads: new Map() })).toBe('token:own');
  });

  test('adds up the requests that ended and failed on a workload, and forgets those of a replica that is gone', () => {
    const w = WorkloadId.parse('w');
    const local = { demand: new Map(), workloads: new Map([[w, { inFlight: 0, ended: 4, failed: 1, lastUsedAt: SEEN }]]) };
    const other = (ended: number, failed: number, fresh = true) => ({
      report: reportOf({}, { w: [0, 50] }, {}, { w: [ended, failed] }),
      seenAt: SEEN,
      fresh,
    });
    expect(merge(local, other(10, 2), other(100, 50, false)).workloads.get(w)).toMatchObject({ ended: 14, failed: 3 });
  });

  test('keeps the time of last use after it is no longer reported', () => {
    const history = rememberReport(NO_HISTORY, received({ chat: [0, 50] }, { w: [0, 60] }));
    expect(mergeTraffic(factsOf(), [], history)).toEqual(factsOf({ chat: [0, SEEN - 50] }, { w: [0, SEEN - 60] }));
  });

  test('keeps the later time when an older report arrives', () => {
    const history = rememberReport(NO_HISTORY, received({ chat: [0, 50] }));
    expect(rememberReport(history, received({ chat: [0, 500] }))).toEqual(history);
  });

  test('does not grow without limit as workloads come and go', () => {
    let history = NO_HISTORY;
    for (let round = 0; round < 50; round += 1) {
      const use = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`w${round}-${index}`, [0, 0] as const]));
      history = rememberReport(history, received({}, use, { seenAt: SEEN + round }));
    }
    expect(history.usedAt.size).toBe(4096);
    expect([...history.usedAt.keys()].filter((id) => id.startsWith('w49-'))).toHaveLength(200);
  });
});

describe('wakeFor()', () => {
  test.each([
    ['demand that begins: immediately', reportOf(), reportOf({ chat: [1, 0] }), 0],
    ['the first report with demand', undefined, reportOf({ chat: [1, 0] }), 0],
    ['more demand of the same slot: never', reportOf({ chat: [1, 0] }), reportOf({ chat: [5, 0] }), undefined],
    ['demand that ends', reportOf({ chat: [1, 0] }), reportOf({ chat: [0, 0] }), undefined],
    ['use that begins: later', reportOf({}, { w: [0, 9] }), reportOf({}, { w: [1, 0] }), 1000],
    ['use that ends', reportOf({}, { w: [1, 9] }), reportOf({}, { w: [0, 9] }), 1000],
    ['a workload that is used for the first time', reportOf(), reportOf({}, { w: [0, 9] }), 1000],
    ['a renewal', reportOf({ chat: [1, 0] }, { w: [1, 0] }), reportOf({ chat: [1, 9] }, { w: [1, 9] }), undefined],
  ])('%s', (_what, before, next, expected) => {
    expect(wakeFor(before, next)).toBe(expected);
  });
});
