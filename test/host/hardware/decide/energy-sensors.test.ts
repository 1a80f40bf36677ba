import { describe, expect, test } from '@jest/globals';
import { parseAmount, parseNvidiaPower, pickRaplZones, withoutDoubles } from '../../../../src/host/hardware/decide/energy-sensors.ts';
import type { SensorReading } from '../../../../src/schema/status/hardware.ts';

describe('zones of RAPL', () => {
  test.each([
    ['none', {}, []],
    [
      'a package without its parts',
      { 'intel-rapl:0': 'package-0', 'intel-rapl:0:0': 'core', 'intel-rapl:0:1': 'uncore' },
      ['RAPL package-0'],
    ],
    [
      'two packages, each with its memory',
      {
        'intel-rapl:1:0': 'dram',
        'intel-rapl:0:0': 'dram',
        'intel-rapl:1': 'package-1',
        'intel-rapl:0': 'package-0',
        'intel-rapl:0:1': 'core',
      },
      ['RAPL package-0', 'RAPL package-0 dram', 'RAPL package-1', 'RAPL package-1 dram'],
    ],
    [
      'two dies',
      { 'intel-rapl:0': 'package-0-die-0', 'intel-rapl:1': 'package-0-die-1' },
      ['RAPL package-0-die-0', 'RAPL package-0-die-1'],
    ],
    [
      'no platform beside its package',
      { 'intel-rapl:0': 'package-0', 'intel-rapl:1': 'psys', 'intel-rapl:1:0': 'dram' },
      ['RAPL package-0'],
    ],
    [
      'a package that is shown twice once',
      { 'intel-rapl-mmio:0': 'package-0', 'intel-rapl:0': 'package-0', 'intel-rapl-mmio:0:0': 'dram' },
      ['RAPL package-0'],
    ],
    ['a package that only memory-mapped registers show', { 'intel-rapl-mmio:0': 'package-0' }, ['RAPL package-0']],
    ['nothing whose name cannot be read', { 'intel-rapl': '', 'intel-rapl:0': '' }, []],
    ['no memory of zone 10 for zone 1', { 'intel-rapl:1': 'package-1', 'intel-rapl:10:0': 'dram' }, ['RAPL package-1']],
  ])('%s', (_what, names, sources) => {
    expect(pickRaplZones(new Map(Object.entries(names))).map(({ source }) => source)).toEqual(sources);
  });

  test('of the kernel driver count before those of memory-mapped registers', () => {
    const names = { 'intel-rapl-mmio:0': 'package-0', 'intel-rapl:0': 'package-0' };
    expect(pickRaplZones(new Map(Object.entries(names)))).toEqual([{ zone: 'intel-rapl:0', source: 'RAPL package-0' }]);
  });
});

test.each([
  ['0', 0],
  ['262143328850', 262_143_328_850],
  ['-5', undefined],
  ['1.5', undefined],
  ['', undefined],
  ['N/A', undefined],
  ['9007199254740993', undefined],
  ['99999999999999999999', undefined],
  [undefined, undefined],
])('the amount %j is %j', (text, amount) => {
  expect(parseAmount(text)).toBe(amount);
});

test('nvidia-smi tells watts of each GPU, or that it knows none', () => {
  const output =
    '00000000:01:00.0, 45.32\n00000000:02:00.0, [N/A]\n00000000:03:00.0, -3.00\n\n00000000:C4:00.0, 350\nNo devices were found\n';
  expect(parseNvidiaPower(output, 7)).toEqual([
    { source: 'nvidia-smi 0000:01:00.0', device: 'gpu', at: 7, powerUw: 45_320_000 },
    { source: 'nvidia-smi 0000:02:00.0', device: 'gpu', at: 7, problem: 'not reported' },
    { source: 'nvidia-smi 0000:03:00.0', device: 'gpu', at: 7, problem: 'not reported' },
    { source: 'nvidia-smi 0000:c4:00.0', device: 'gpu', at: 7, powerUw: 350_000_000 },
  ]);
});

describe('an integrated GPU', () => {
  const apu: SensorReading = { source: 'amdgpu 0000:c4:00.0', device: 'host', at: 1, powerUw: 9 };
  const card: SensorReading = { source: 'amdgpu 0000:03:00.0', device: 'gpu', at: 1, powerUw: 9 };
  const rapl: SensorReading = { source: 'RAPL package-0', device: 'host', at: 1, energyUj: 9 };

  test('does not count where RAPL tells the energy of the package', () => {
    expect(withoutDoubles([rapl, apu, card])).toEqual([
      rapl,
      { source: apu.source, device: 'host', at: 1, problem: 'included in RAPL' },
      card,
    ]);
  });

  test('counts where RAPL may not be read', () => {
    const denied = { ...rapl, energyUj: undefined, problem: 'permission denied' };
    expect(withoutDoubles([denied, apu])).toEqual([denied, apu]);
    expect(withoutDoubles([apu])).toEqual([apu]);
  });
});
