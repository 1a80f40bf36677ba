import { describe, expect, test } from '@jest/globals';
import { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import { hadRequests, NEVER_COLLECTED, timeToCollect, type IdleSample } from '../../../../src/turbo/heap/collect-when-idle.ts';

const MB = 1_000_000;
const IDLE: IdleSample = { cpuShare: 0.01, hadRequests: false, heapBytes: 100 * MB, now: 1_000_000 };
const collects = (samples: readonly Partial<IdleSample>[], leftBytes?: number): readonly boolean[] => {
  let state = { ...NEVER_COLLECTED, leftBytes };
  return samples.map((sample) => {
    const next = timeToCollect(state, { ...IDLE, ...sample });
    state = { ...next.state, leftBytes };
    return next.collect;
  });
};

describe('timeToCollect()', () => {
  test.each<[string, readonly Partial<IdleSample>[], number | undefined, readonly boolean[]]>([
    ['idle twice in a row, for the first time', [{}, {}], undefined, [false, true]],
    ['a pass in between', [{}, { cpuShare: 0.2 }, {}, {}], undefined, [false, false, false, true]],
    ['a request in between', [{}, { hadRequests: true }, {}, {}], undefined, [false, false, false, true]],
    ['the heap has hardly grown since the last collection', [{}, {}, {}], 95 * MB, [false, false, false]],
    ['the heap has grown much since the last collection', [{}, {}], 80 * MB, [false, true]],
    ['the heap grows much while idle', [{}, {}, { heapBytes: 130 * MB }], 100 * MB, [false, false, true]],
  ])('%s', (_case, samples, leftBytes, expected) => {
    expect(collects(samples, leftBytes)).toEqual(expected);
  });

  test('an expensive collection is not repeated before its pause is over, however much the heap grows', () => {
    const state = { idleChecks: 5, leftBytes: 100 * MB, notBefore: IDLE.now + 100_000 };
    const grown = { ...IDLE, heapBytes: 200 * MB };
    const at = (now: number) => timeToCollect(state, { ...grown, now }).collect;
    expect([at(IDLE.now + 99_000), at(IDLE.now + 100_000)]).toEqual([false, true]);
  });
});

describe('hadRequests()', () => {
  const NOW = 1_000_000;
  const workload = (inFlight: number, lastUsedAt: number | undefined) => new Map([[WorkloadId.parse('w'), { inFlight, lastUsedAt }]]);
  const demand = (waiting: number) => new Map([[SlotName.parse('primary'), { waiting, lastAskedAt: 0 }]]);
  test.each([
    ['no request ever', new Map(), new Map(), false],
    ['a request long ago', workload(0, NOW - 60_000), new Map(), false],
    ['a recent request', workload(0, NOW - 5000), new Map(), true],
    ['a stream that began long ago', workload(1, NOW - 600_000), new Map(), true],
    ['a parked request', new Map(), demand(1), true],
    ['a request that was parked once', new Map(), demand(0), false],
  ])('%s', (_case, workloads, demands, expected) => {
    expect(hadRequests({ workloads, demand: demands }, NOW, 10_000)).toBe(expected);
  });
});
