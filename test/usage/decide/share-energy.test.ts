import { describe, expect, test } from '@jest/globals';
import type { SensorReading } from '../../../src/schema/status/hardware.ts';
import { devicesOf, energyBetween, energySince, wattsOfRequest } from '../../../src/usage/decide/share-energy.ts';

const RANGE = 65_532_610_987;
const rapl = (energyUj: number | undefined, at = 0, more: Partial<SensorReading> = {}): SensorReading => ({
  source: 'RAPL package-0',
  device: 'host',
  at,
  energyUj,
  rangeUj: RANGE,
  ...more,
});
const card = (watts: number, at = 0, source = 'amdgpu 0000:03:00.0'): SensorReading => ({
  source,
  device: 'gpu',
  at,
  powerUw: watts * 1e6,
});

describe('the energy between two readings', () => {
  test.each([
    ['of a counter', [rapl(1_000_000)], [rapl(61_000_000, 3000)], { host: 60_000 }],
    ['of a counter that has wrapped', [rapl(RANGE - 20_000_000)], [rapl(40_000_000, 3000)], { host: 60_000 }],
    ['of a counter that began anew', [rapl(9_000_000_000)], [rapl(5, 3000)], {}],
    ['of a counter without a range that began anew', [rapl(900)], [rapl(5, 3000, { rangeUj: undefined })], {}],
    ['of a counter beyond its range', [rapl(RANGE + 5e12)], [rapl(5, 3000)], {}],
    ['of a counter that jumped', [rapl(0)], [rapl(60_000_000_000, 3000)], {}],
    ['of power, as the mean of both', [card(100)], [card(300, 3000)], { gpu: 600_000 }],
    ['of power that is absurd', [card(1e6)], [card(1e6, 3000)], {}],
    ['of power that is negative', [card(-50)], [card(-10, 3000)], {}],
    ['of two GPUs', [card(10, 0, 'a'), card(20, 0, 'b')], [card(20, 1000, 'b'), card(10, 1000, 'a')], { gpu: 30_000 }],
    ['of both devices', [rapl(0), card(10)], [rapl(5_000_000, 1000), card(10, 1000)], { host: 5000, gpu: 10_000 }],
    ['of a sensor that appeared', [], [rapl(5, 3000)], {}],
    ['of a sensor that vanished', [rapl(0), card(10)], [card(10, 1000)], { gpu: 10_000 }],
    ['of a sensor that cannot be read now', [rapl(0)], [rapl(undefined, 3000, { problem: 'cannot be read (ENODEV)' })], {}],
    ['of a sensor that changed its kind', [rapl(5)], [rapl(undefined, 3000, { powerUw: 5 })], {}],
    ['of no time', [rapl(0, 7)], [rapl(5, 7)], {}],
    ['of a clock that was set back', [rapl(0, 9000)], [rapl(5, 7)], {}],
    ['of a machine that slept', [rapl(0)], [rapl(5_000_000, 60_000)], {}],
    ['of a time that is no number', [rapl(0, Number.NaN)], [rapl(5, 7)], {}],
    ['of nothing at all', [rapl(5)], [rapl(5, 3000)], { host: 0 }],
  ])('%s', (_what, before, after, energy) => {
    expect(energyBetween(before, after)).toEqual(energy);
  });

  test('a counter with the smallest range that began anew is never taken for one that wrapped', () => {
    for (let ms = 500; ms <= 30_000; ms += 500) expect(energyBetween([rapl(100_000)], [rapl(50_000, ms)])).toEqual({});
  });
});

describe('the power of a request', () => {
  const interval = { ms: 3000, milliJoules: 300_000 };
  test.each([
    ['that ran all the time is that of the machine', { busyMs: 3000 }, 100],
    ['beside three others is a quarter of it', { busyMs: 12_000 }, 25],
    ['that ran for a third is the mean', { busyMs: 1000 }, 100],
    ['that ran for a third leaves what is known of the rest', { busyMs: 1000, idleWatts: 20, busyWatts: 400 }, 260],
    ['is at most that of a machine at work', { busyMs: 10, idleWatts: 20, busyWatts: 150 }, 150],
    ['of milliseconds beside another program is the mean', { busyMs: 10, idleWatts: 20 }, 100],
    ['is never less than the mean', { busyMs: 1000, idleWatts: 500, busyWatts: 50 }, 100],
    ['is nothing if none ran', { busyMs: 0 }, 0],
    ['is nothing within no time', { busyMs: 5, ms: 0 }, 0],
  ])('%s', (_what, more, watts) => {
    expect(wattsOfRequest({ ...interval, ...more })).toBeCloseTo(watts, 6);
  });

  test('times the work is never more than what was measured', () => {
    for (const busyMs of [1, 500, 2999, 3000, 3001, 90_000])
      for (const idleWatts of [undefined, 0, 20, 100, 1e6])
        for (const busyWatts of [undefined, 0, 20, 1e6])
          expect(wattsOfRequest({ ...interval, busyMs, idleWatts, busyWatts }) * busyMs).toBeLessThanOrEqual(300_000.001);
  });
});

describe('the energy since a time', () => {
  const points = [
    { at: 10, host: 0, gpu: 0 },
    { at: 20, host: 100, gpu: 5 },
    { at: 40, host: 100, gpu: 5 },
    { at: 50, host: 200, gpu: 5 },
  ];
  test.each([
    ['after the last point', 60, 0],
    ['at the last point', 50, 0],
    ['within the last part', 45, 50],
    ['within a pause', 30, 100],
    ['within the first part', 15, 150],
    ['at the first point', 10, 200],
    ['before the first point', -5, 200],
  ])('%s', (_what, start, energy) => {
    expect(energySince(points, start, 'host')).toBe(energy);
  });
  test('is nothing without points', () => {
    expect(energySince([], 5, 'gpu')).toBe(0);
    expect(energySince([{ at: 9, host: 7, gpu: 7 }], 5, 'gpu')).toBe(0);
  });
});

test.each([
  ['remote', undefined, []],
  ['remote', 'cpu', []],
  ['gguf', undefined, ['host']],
  ['gguf', 'cpu', ['host']],
  ['npu', 'npu', ['host']],
  ['gguf', 'vulkan', ['host', 'gpu']],
  ['image', 'cuda', ['host', 'gpu']],
])('a slot of %s on %s uses %j', (provider, backend, devices) => {
  expect(devicesOf({ provider, backend })).toEqual(devices);
});
