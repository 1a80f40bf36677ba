/** The formats of single files and tools. */
import { describe, expect, test } from '@jest/globals';
import { targetName } from '../../../../src/host/hardware/decide/amd-gpu.ts';
import { parseNvidiaSmi } from '../../../../src/host/hardware/decide/nvidia-gpu.ts';
import { pciKindOf, pickPciIds, sysfsAddress } from '../../../../src/host/hardware/decide/pci-devices.ts';
import { pickCpuinfo } from '../../../../src/host/hardware/decide/hardware-of.ts';

const MIB = 1024 ** 2;

describe('parseNvidiaSmi()', () => {
  const cases: readonly (readonly [string, string, unknown])[] = [
    [
      'reads sizes in MiB',
      '00000000:01:00.0, NVIDIA A100-SXM4-80GB, 81920, 81000, 8.0',
      { totalBytes: 81_920 * MIB, freeBytes: 81_000 * MIB },
    ],
    ['knows a GPU without memory of its own', '0000000F:01:00.0, NVIDIA GB10, [N/A], [N/A], 12.1', 'unified'],
    ['does not take a lost GPU for one', '00000000:01:00.0, Unknown, [GPU is lost], [GPU is lost], [GPU is lost]', undefined],
    ['does not take a fault for one', '00000000:01:00.0, NVIDIA T4, [Unknown Error], [Unknown Error], 7.5', undefined],
  ];
  for (const [sentence, line, memory] of cases) {
    test(sentence, () => expect(parseNvidiaSmi(`${line}\n`)).toMatchObject([{ memory }]));
  }

  test('ignores messages', () => {
    expect(parseNvidiaSmi('NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\n')).toEqual([]);
    expect(parseNvidiaSmi('Field "compute_cap" is not a valid field to query.\n')).toEqual([]);
    expect(parseNvidiaSmi('')).toEqual([]);
  });
});

describe('the parsers', () => {
  test.each([
    [110_501, 'gfx1151'],
    [110_000, 'gfx1100'],
    [90_010, 'gfx90a'],
    [90_402, 'gfx942'],
    [100_300, 'gfx1030'],
    [0, undefined],
  ])('target %d is %s', (version, name) => expect(targetName(version)).toBe(name));

  test.each([
    ['00000000:0A:00.0', '0000:0a:00.0'],
    ['0000000F:01:00.0', '000f:01:00.0'],
    ['0000:c4:00.1', '0000:c4:00.1'],
    ['00010000:01:00.0', '10000:01:00.0'],
    ['N/A', undefined],
    ['01:00.0', undefined],
  ])('the address %s is %s', (text, address) => expect(sysfsAddress(text)).toBe(address));

  test.each([
    ['a GPU', 0x030000, 0x10de, 0x2204, 'gpu'],
    ['a GPU without a display', 0x030200, 0x10de, 0x20b0, 'gpu'],
    ['an accelerator of AMD', 0x120000, 0x1002, 0x74a1, 'gpu'],
    ['the NPU of an Intel processor', 0x120000, 0x8086, 0x7d1d, 'npu'],
    ['the NPU of an AMD processor', 0x118000, 0x1022, 0x17f0, 'npu'],
    ['another signal processor', 0x118000, 0x1022, 0x1234, undefined],
    ['a network card', 0x020000, 0x8086, 0x1533, undefined],
    ['nothing that is known', undefined, undefined, undefined, undefined],
  ])('%s is told by its class', (_name, classCode, vendor, device, kind) => expect(pciKindOf(classCode, vendor, device)).toBe(kind));

  test('a list of PCI ids is cut to the devices of the machine', () => {
    const list =
      '# comment\n1002  AMD\n\t1586  Strix Halo [Radeon 8050S / 8060S]\n\t\t1002 1586  board\n\t1636  Renoir\n10de  NVIDIA\n\t1586  Wrong\nC 00  Class\n';
    expect(pickPciIds(list, [{ vendor: 0x1002, device: 0x1586 }])).toBe('1002  vendor\n\t1586  Radeon 8050S / 8060S\n');
    expect(pickPciIds(list, [{ vendor: 0x1002, device: 0x1636 }])).toBe('1002  vendor\n\t1636  Renoir\n');
  });

  test('the serial number of a board is not kept', () => {
    expect(pickCpuinfo('processor\t: 0\nBogoMIPS\t: 108.00\nSerial\t\t: 10000000abcdef\nmodel name\t: X  \n')).toBe(
      'processor: 0\nmodel name: X\n',
    );
  });
});
