import { describe, expect, test } from '@jest/globals';
import { devicesGiven, placementVariables, saysPlacement } from '../../../../src/reconciler/decide/facts/drift.ts';
import {
  findPools,
  poolsOfBackend,
  totalBytes,
  withDevices,
  type PoolBytes,
} from '../../../../src/reconciler/decide/facts/memory-pools.ts';
import { placeMemory } from '../../../../src/reconciler/decide/rules/memory-turns.ts';
import { shareMemory, type MemoryClaim } from '../../../../src/reconciler/decide/rules/share-memory.ts';
import { recordedHardware } from '../../../support/hardware/recorded-machines.ts';
import { slotName } from '../../../support/simulation/world.ts';

const GIB = 2 ** 30;
const TWO_GPUS = recordedHardware('rtx-3090-and-4090');
const addressOf = (device: string): string => TWO_GPUS.devices.find(({ id }) => id === device)?.pciAddress ?? '';

/** Places so many GiB where each pool has so many GiB left. */
function place(deviceGib: number, free: Readonly<Record<string, number>>, gpus?: number): PoolBytes {
  const own = Object.keys(free).filter((id) => id !== 'host');
  const question = { demand: { hostBytes: 1, deviceBytes: deviceGib }, pools: { own, dedicated: [] }, gpus };
  return placeMemory(question, (id) => free[id] ?? 0);
}

describe('placeMemory()', () => {
  test.each([
    ['the only device', place(8, { gpu0: 24 }), { host: 1, gpu0: 8 }],
    ['the fullest device in which it fits', place(8, { gpu0: 24, gpu1: 10 }), { host: 1, gpu1: 8 }],
    ['the larger device where it fits only there', place(12, { gpu0: 24, gpu1: 10 }), { host: 1, gpu0: 12 }],
    ['two devices where it fits on none, by what is free', place(30, { gpu0: 24, gpu1: 12 }), { host: 1, gpu0: 20, gpu1: 10 }],
    ['as few devices as possible', place(30, { gpu0: 8, gpu1: 20, gpu2: 20 }), { host: 1, gpu1: 15, gpu2: 15 }],
    ['the number of devices that is asked for', place(8, { gpu0: 24, gpu1: 24 }, 2), { host: 1, gpu0: 4, gpu1: 4 }],
    ['not more devices than there are', place(8, { gpu0: 24 }, 4), { host: 1, gpu0: 8 }],
    ['all devices where nothing fits', place(60, { gpu0: 20, gpu1: 20 }), { host: 1, gpu0: 30, gpu1: 30 }],
    ['one device where that is asked for, also where it does not fit', place(30, { gpu0: 20, gpu1: 24 }, 1), { host: 1, gpu1: 30 }],
  ])('uses %s', (_, placement, expected) => {
    expect(placement).toEqual(expected);
  });

  test('uses the memory of the host where no device has one of its own', () => {
    const demand = { hostBytes: 1, deviceBytes: 8 };
    const unlimited = (): number => Number.POSITIVE_INFINITY;
    expect(placeMemory({ demand, pools: { own: [], dedicated: [] }, gpus: undefined }, unlimited)).toEqual({ host: 9 });
    const aside = { own: [], dedicated: ['gpu0'] };
    expect(placeMemory({ demand, pools: aside, gpus: undefined }, (id) => (id === 'gpu0' ? 5 : 100))).toEqual({ host: 4, gpu0: 5 });
  });
});

describe('the pools of a machine', () => {
  const poolsOf = (hardware: ReturnType<typeof recordedHardware>, used: PoolBytes = {}) => {
    const memory = { memoryTotalBytes: hardware.memory?.totalBytes, memoryAvailableBytes: hardware.memory?.availableBytes };
    return findPools({ ...memory, hostBudgetBytes: 100 * GIB, hardware, used });
  };

  test('are the memory of the host and that of each discrete GPU, less than all of it', () => {
    const pools = poolsOf(TWO_GPUS);
    expect(pools.map(({ id }) => id)).toEqual(['host', 'gpu0', 'gpu1']);
    for (const { id, budgetBytes = 0 } of pools.slice(1)) {
      const total = TWO_GPUS.devices.find((device) => device.id === id)?.memory?.totalBytes ?? 0;
      expect(budgetBytes).toBeLessThan(total);
      expect(budgetBytes).toBeGreaterThan(0.9 * total);
    }
    expect(poolsOfBackend(TWO_GPUS, 'cuda')).toEqual({ own: ['gpu0', 'gpu1'], dedicated: [] });
    expect(poolsOfBackend(TWO_GPUS, 'cpu')).toEqual({ own: [], dedicated: [] });
  });

  test.each<[readonly string[] | undefined, readonly string[]]>([
    [undefined, ['gpu0', 'gpu1']],
    [['gpu1'], ['gpu1']],
    [
      ['gpu1', 'gpu0'],
      ['gpu0', 'gpu1'],
    ],
    [[addressOf('gpu1')], ['gpu1']],
    [['gpu7'], []],
  ])('for a slot that names %j are %j', (names, own) => {
    expect(poolsOfBackend(withDevices(TWO_GPUS, names), 'cuda').own).toEqual(own);
  });

  test('are one where a GPU computes in the memory of the host, apart from what is set aside for it', () => {
    const apple = recordedHardware('macbook-m2-max');
    expect(poolsOf(apple).map(({ id }) => id)).toEqual(['host']);
    const aside = recordedHardware('strix-halo-96gb-set-aside');
    const [, own] = poolsOf(aside);
    expect(own?.budgetBytes).toBeGreaterThan(90 * GIB * 0.95);
    expect(poolsOfBackend(aside, 'vulkan')).toEqual({ own: [], dedicated: ['gpu0'] });
  });

  test('count as used by others what is neither free nor ours', () => {
    const [gpu] = TWO_GPUS.devices;
    const { totalBytes: total = 0 } = gpu?.memory ?? {};
    const busy = {
      ...TWO_GPUS,
      devices: TWO_GPUS.devices.map((device) => ({ ...device, memory: { totalBytes: total, freeBytes: total / 2 } })),
    };
    const others = (used: number): number => poolsOf(busy, { gpu0: used })[1]?.othersBytes ?? -1;
    expect(others(0)).toBeGreaterThan(0.4 * total);
    expect(others(total / 4)).toBeLessThan(0.25 * total);
    expect(others(total / 2)).toBe(0);
    expect(others(total)).toBe(0);
  });
});

describe('placement in the order of admission', () => {
  const claim = (name: string, deviceBytes: number, held?: PoolBytes): MemoryClaim => ({
    slot: slotName(name),
    priority: 0,
    turn: { group: held === undefined ? 'waiting' : 'idle', until: undefined },
    busy: held === undefined,
    incumbent: held !== undefined,
    waitingSince: 0,
    reloadBytes: deviceBytes,
    lastActiveAt: 0,
    held,
    needs: { demand: { hostBytes: 1, deviceBytes }, pools: { own: ['gpu0', 'gpu1'], dedicated: [] }, gpus: undefined },
  });
  const pools = ['host', 'gpu0', 'gpu1'].map((id) => ({ id, budgetBytes: 20, othersBytes: 0 }));
  const placed = (claims: readonly MemoryClaim[]) =>
    Object.fromEntries(
      [...shareMemory(claims, pools).verdicts].map(([name, { admitted, placement }]) => [name, admitted ? placement : undefined]),
    );

  test('prefers a device where nobody has to give way', () => {
    expect(placed([claim('idle', 15, { host: 1, gpu1: 15 }), claim('asked', 12)])).toEqual({
      idle: { host: 1, gpu1: 15 },
      asked: { host: 1, gpu0: 12 },
    });
  });

  test('splits rather than to take memory from an idle slot, and takes it where that is not enough', () => {
    expect(placed([claim('idle', 10, { host: 1, gpu1: 10 }), claim('asked', 28)])).toEqual({
      idle: { host: 1, gpu1: 10 },
      asked: { host: 1, gpu0: 19, gpu1: 10 },
    });
    expect(placed([claim('idle', 10, { host: 1, gpu1: 10 }), claim('asked', 34)]).idle).toBeUndefined();
  });

  test('says which memory is short', () => {
    const verdict = shareMemory([claim('asked', 50)], pools).verdicts.get(slotName('asked'));
    expect(verdict).toMatchObject({ admitted: false, mayWait: false, budgetBytes: 20 });
    expect(verdict?.pool).not.toBe('host');
    expect(totalBytes(verdict?.placement ?? {})).toBeGreaterThanOrEqual(51);
  });
});

/** A slot as far as its devices are concerned. */
const computing = (backend: 'cuda' | 'rocm' | 'vulkan' | 'cpu', ...devices: string[]) => ({
  backend,
  resources: devices.length === 0 ? {} : { devices },
});

describe('the devices that a server sees', () => {
  test('are named by their numbers where there are several', () => {
    expect(placementVariables({ host: 1, gpu1: 5 }, TWO_GPUS, computing('cuda'), {})).toEqual({
      CUDA_VISIBLE_DEVICES: '1',
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    });
    expect(placementVariables({ host: 1, gpu0: 5, gpu1: 5 }, TWO_GPUS, computing('cuda'), {})['CUDA_VISIBLE_DEVICES']).toBe('0,1');
  });

  test('are not named where there is one, where none is used, or where the slot names them itself', () => {
    expect(placementVariables({ host: 1, gpu0: 5 }, recordedHardware('w7900'), computing('rocm'), {})).toEqual({});
    expect(placementVariables({ host: 1 }, TWO_GPUS, computing('cpu'), {})).toEqual({});
    expect(placementVariables({ host: 1, gpu1: 5 }, TWO_GPUS, computing('cuda'), { CUDA_VISIBLE_DEVICES: '0' })).toEqual({});
  });

  test('are those that the slot names, also where its memory is not known', () => {
    const numbers = (placement: PoolBytes, ...devices: string[]) =>
      placementVariables(placement, TWO_GPUS, computing('cuda', ...devices), {})['CUDA_VISIBLE_DEVICES'];
    expect(numbers({ host: 1 }, 'gpu1')).toBe('1');
    expect(numbers({ host: 1 }, 'gpu1', 'gpu0')).toBe('0,1');
    expect(numbers({ host: 1, gpu1: 5 }, 'gpu0', 'gpu1')).toBe('1');
    expect(numbers({ host: 1 })).toBeUndefined();
  });

  test('are recognised in the environment of a server that was found running', () => {
    expect(devicesGiven({ CUDA_VISIBLE_DEVICES: '1' }, TWO_GPUS, 'cuda')).toEqual(['gpu1']);
    expect(devicesGiven({ CUDA_VISIBLE_DEVICES: '7' }, TWO_GPUS, 'cuda')).toBeUndefined();
    expect(devicesGiven({}, TWO_GPUS, 'cuda')).toBeUndefined();
    expect(saysPlacement('CUDA_VISIBLE_DEVICES')).toBe(true);
    expect(saysPlacement('LD_PRELOAD')).toBe(false);
  });
});
