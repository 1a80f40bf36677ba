import { describe, expect, test } from '@jest/globals';
import { isHung } from '../../../../src/reconciler/decide/rules/workload-faults.ts';
import type { Work } from '../../../../src/reconciler/ports.ts';
import type { Backend } from '../../../../src/schema/slot/provider-kinds.ts';

/** Three seconds apart. */
const WINDOW_MS = 3000;
const NOTHING: Work = { cpuMs: 500, deviceMs: undefined };
const COUNTED: Work = { cpuMs: 500, deviceMs: 700 };

const CASES: readonly (readonly [string, Backend, Work | undefined, Work | undefined, boolean])[] = [
  ['it computed nothing', 'cpu', NOTHING, NOTHING, true],
  ['it only answered probes', 'cpu', NOTHING, { ...NOTHING, cpuMs: 600 }, true],
  ['it computes a prompt', 'cpu', NOTHING, { ...NOTHING, cpuMs: 3500 }, false],
  ['it reads evicted weights from a disk', 'cpu', NOTHING, { ...NOTHING, cpuMs: 700 }, false],
  ['its threads no longer wait for a device', 'cuda', NOTHING, NOTHING, true],
  ['a thread waits for a device', 'cuda', NOTHING, { ...NOTHING, cpuMs: 3400 }, false],
  ['the kernel counted no time of a device', 'vulkan', COUNTED, COUNTED, true],
  ['the device computes one long batch', 'vulkan', COUNTED, { ...COUNTED, deviceMs: 3700 }, false],
  ['the device began to compute', 'vulkan', NOTHING, COUNTED, false],
  ['the kernel does not count the time of this device', 'vulkan', NOTHING, NOTHING, false],
  ['the kernel does not count the time of compute queues', 'rocm', COUNTED, COUNTED, false],
  ['nothing counts the time of an NPU', 'npu', NOTHING, NOTHING, false],
  ['its processes cannot be read', 'cpu', undefined, undefined, false],
  ['its processes could be read once', 'cpu', NOTHING, undefined, false],
];

describe('a server that answers "GET" and not its model is hung, or may be busy', () => {
  test.each(CASES)('%s (%s)', (_what, backend, before, after, expected) => {
    expect(isHung(backend, before, after, WINDOW_MS)).toBe(expected);
  });
});
