import { describe, expect, test } from '@jest/globals';
import { HOST } from '../../../../src/reconciler/decide/facts/memory-pools.ts';
import {
  afterStarts,
  openAllocation,
  portFor,
  roomFor,
  spillAside,
  type SharedResources,
} from '../../../../src/reconciler/decide/rules/allocator.ts';
import { plan } from '../../../../src/reconciler/decide/plan.ts';
import { NOW, PRIMARY, factsOf } from '../plan-fixture.ts';

const RESOURCES: SharedResources = {
  portRange: { first: 18_080, last: 18_082 },
  takenPorts: new Set([18_080]),
  pools: [{ id: HOST, budgetBytes: 5000, othersBytes: 0 }],
  availableBytes: 3000,
  held: { host: 2000 },
  admitted: { host: 4000 },
};
const start = startOf();

describe('The allocator', () => {
  test('offers the lowest port that is not taken', () => {
    expect(openAllocation(RESOURCES).freePort).toBe(18_081);
    expect(openAllocation({ ...RESOURCES, takenPorts: new Set([18_080, 18_081, 18_082]) }).freePort).toBeUndefined();
  });

  test.each([
    [undefined, 18_081],
    [18_081, 18_082],
    [18_082, 18_081],
    [18_080, 18_081],
  ])('where the server failed on port %p, offers %p', (avoided, port) => expect(portFor(openAllocation(RESOURCES), avoided)).toBe(port));

  test('offers the port that the server failed on where no other one is free', () => {
    const last = openAllocation({ ...RESOURCES, takenPorts: new Set([18_080, 18_082]) });
    expect(portFor(last, 18_081)).toBe(18_081);
    expect(portFor({ ...last, freePort: undefined }, 18_081)).toBeUndefined();
  });

  test('takes port and memory of a started workload out of the next allocation, and leaves the one before as it was', () => {
    const first = openAllocation(RESOURCES);
    const second = afterStarts(first, [start(18_081)]);
    expect(second).toMatchObject({ freePort: 18_082, started: { host: 1000 } });
    expect(afterStarts(second, [start(18_082)])).toMatchObject({ freePort: undefined, started: { host: 2000 } });
    expect(first).toMatchObject({ freePort: 18_081, started: {} });
  });

  test('what does not fit into memory that is set aside for a device is taken from the rest of the host', () => {
    const aside = { id: 'gpu0', budgetBytes: 600, othersBytes: 0, aside: true } as const;
    const ofGpu = { ...RESOURCES, pools: [...RESOURCES.pools, aside], held: { host: 2000, gpu0: 500 } };
    expect(spillAside({ host: 10, gpu0: 570 }, openAllocation(ofGpu))).toEqual({ host: 480, gpu0: 100 });
    expect(spillAside({ gpu0: 100 }, openAllocation(ofGpu))).toEqual({ host: 0, gpu0: 100 });
    const discrete = { ...ofGpu, pools: [...RESOURCES.pools, { id: 'gpu0', budgetBytes: 600, othersBytes: 0 }] };
    expect(spillAside({ gpu0: 570 }, openAllocation(discrete))).toEqual({ gpu0: 570 });
  });

  test('is the same when nothing is started', () => {
    const allocation = openAllocation(RESOURCES);
    expect(afterStarts(allocation, [])).toBe(allocation);
  });

  test('a workload fits now when all that exist and are started leave room for it', () => {
    const memory = { needed: { host: 1500 }, claimed: { host: 1500 }, held: { host: 0 } };
    const allocation = openAllocation(RESOURCES);
    expect(roomFor(memory, allocation).fitsNow).toBe(true);
    expect(roomFor(memory, afterStarts(allocation, [start(18_081), start(18_082)])).fitsNow).toBe(false);
  });

  test('a workload fits beside the old one when both fit beside everything that is admitted, and the host has the memory', () => {
    const allocation = openAllocation(RESOURCES);
    expect(roomFor({ needed: { host: 1000 }, claimed: { host: 1000 }, held: { host: 1000 } }, allocation).fitsBeside).toBe(true);
    expect(roomFor({ needed: { host: 2500 }, claimed: { host: 1000 }, held: { host: 1000 } }, allocation)).toEqual({
      fitsNow: true,
      fitsBeside: false,
    });
    const busyHost = openAllocation({ ...RESOURCES, availableBytes: 500 });
    expect(roomFor({ needed: { host: 1000 }, claimed: { host: 1000 }, held: { host: 1000 } }, busyHost)).toEqual({
      fitsNow: true,
      fitsBeside: false,
    });
  });

  test('without a budget, everything fits', () => {
    const allocation = openAllocation({
      ...RESOURCES,
      pools: [{ id: HOST, budgetBytes: undefined, othersBytes: 0 }],
      availableBytes: undefined,
    });
    expect(roomFor({ needed: { host: 1e12 }, claimed: { host: 0 }, held: { host: 0 } }, allocation)).toEqual({
      fitsNow: true,
      fitsBeside: true,
    });
  });
});

/** The start that a plan makes of one slot, on another port and with 1000 bytes. */
function startOf() {
  const { desired, observed } = factsOf({});
  const planned = plan(desired, observed, NOW).actions.find(({ name, slot }) => name === 'apply' && slot === PRIMARY);
  if (planned?.name !== 'apply') throw new Error('Nothing was started');
  return (port: number) => ({
    ...planned,
    args: {
      ...planned.args,
      workload: { ...planned.args.workload, port: { host: port, container: port } },
      origin: { ...planned.args.origin, memory: { host: 1000 } },
    },
  });
}
