import { describe, expect, test } from '@jest/globals';
import { SlotName, WorkloadId } from '../../../src/schema/names.ts';
import { NEVER_COLLECTED, timeToCollect, wasAsked, type RestSample } from '../../../src/platform/decide/time-to-collect.ts';

const MB = 1_000_000;
const CALM: RestSample = { cpuShare: 0.01, asked: false, heapBytes: 100 * MB };
const collects = (samples: readonly Partial<RestSample>[], leftBytes?: number): readonly boolean[] => {
  let state = { ...NEVER_COLLECTED, leftBytes };
  return samples.map((sample) => {
    const next = timeToCollect(state, { ...CALM, ...sample });
    state = { ...next.state, leftBytes };
    return next.collect;
  });
};

describe('timeToCollect()', () => {
  test.each<[string, readonly Partial<RestSample>[], number | undefined, readonly boolean[]]>([
    ['calm twice in a row, for the first time', [{}, {}], undefined, [false, true]],
    ['a pass in between', [{}, { cpuShare: 0.2 }, {}, {}], undefined, [false, false, false, true]],
    ['a request in between', [{}, { asked: true }, {}, {}], undefined, [false, false, false, true]],
    ['nothing has come since the last time', [{}, {}, {}], 95 * MB, [false, false, false]],
    ['much has come since', [{}, {}], 80 * MB, [false, true]],
    ['much comes while it is calm', [{}, {}, { heapBytes: 130 * MB }], 100 * MB, [false, false, true]],
  ])('%s', (_case, samples, leftBytes, expected) => {
    expect(collects(samples, leftBytes)).toEqual(expected);
  });
});

describe('wasAsked()', () => {
  const NOW = 1_000_000;
  const workload = (inFlight: number, lastUsedAt: number | undefined) => new Map([[WorkloadId.parse('w'), { inFlight, lastUsedAt }]]);
  const demand = (waiting: number) => new Map([[SlotName.parse('primary'), { waiting, lastAskedAt: 0 }]]);
  test.each([
    ['nothing ever', new Map(), new Map(), false],
    ['a request long ago', workload(0, NOW - 60_000), new Map(), false],
    ['a request lately', workload(0, NOW - 5000), new Map(), true],
    ['a stream that began long ago', workload(1, NOW - 600_000), new Map(), true],
    ['a request that waits', new Map(), demand(1), true],
    ['one that waited once', new Map(), demand(0), false],
  ])('%s', (_case, workloads, demands, expected) => {
    expect(wasAsked({ workloads, demand: demands }, NOW, 10_000)).toBe(expected);
  });
});
