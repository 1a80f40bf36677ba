import { describe, expect, test } from '@jest/globals';
import { correctDemand, measure } from '../../../../src/reconciler/decide/facts/measured-memory.ts';
import { factsOf } from '../plan-fixture.ts';

const { slot, observed } = factsOf({ slot: { provider: 'gguf', backend: 'cpu' }, workloads: [{ id: 'w1' }] });
const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
if (workload === undefined) throw new Error('There is no workload');
const estimate = { hostBytes: 1000, deviceBytes: 0 };
const on = (backend: 'cpu' | 'cuda') => ({ ...slot.spec, backend });
const measured = (memory: { readonly host: number; readonly mapped?: number; readonly device?: number }) => ({ revision: 'r', memory });

describe('correctDemand()', () => {
  test.each([
    ['nothing was measured', undefined, 1000],
    ['less was measured', measured({ host: 400 }), 1000],
    ['a little more was measured', measured({ host: 1100 }), 1000],
    ['much more was measured', measured({ host: 1101 }), 1101],
    ['weights are mapped as well', measured({ host: 400, mapped: 900 }), 1300],
  ])('counts what it should where %s', (_, memory, bytes) => {
    expect(correctDemand(estimate, on('cpu'), memory)).toEqual({ hostBytes: bytes, deviceBytes: 0 });
  });

  test('does not count files that are mapped where the model is in the memory of a device', () => {
    const ofDevice = { hostBytes: 1000, deviceBytes: 5000 };
    expect(correctDemand(ofDevice, on('cuda'), measured({ host: 900, mapped: 5000 }))).toBe(ofDevice);
    expect(correctDemand(ofDevice, on('cuda'), measured({ host: 900, device: 9000 }))).toEqual({ hostBytes: 1000, deviceBytes: 9000 });
  });

  test('does not count a device that a server which computes on the CPU has opened to look at it', () => {
    expect(correctDemand(estimate, on('cpu'), measured({ host: 900, device: 64 }))).toBe(estimate);
  });
});

test('measure() keeps the most for one revision, and begins again with another one', () => {
  const first = measure(undefined, { ...workload, memoryBytes: { host: 5, mapped: 1 } });
  expect(first).toEqual({ revision: workload.revision, memory: { host: 5, mapped: 1 } });
  expect(measure(first, { ...workload, memoryBytes: { host: 4, mapped: 1 } })).toBe(first);
  expect(measure(first, { ...workload, memoryBytes: { host: 4, mapped: 3 } })?.memory).toEqual({ host: 5, mapped: 3, device: 0 });
  expect(measure(first, workload)).toBe(first);
  expect(measure({ revision: 'other', memory: { host: 9 } }, { ...workload, memoryBytes: { host: 1 } })?.memory).toEqual({ host: 1 });
});
