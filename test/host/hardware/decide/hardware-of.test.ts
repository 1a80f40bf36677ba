/** What the probe makes of recordings of machines. The recordings say where their facts come from. */
import { describe, expect, test } from '@jest/globals';
import { hardwareOf } from '../../../../src/host/hardware/decide/hardware-of.ts';
import type { Device, HardwareRecording } from '../../../../src/schema/status/hardware.ts';
import { RECORDED_MACHINES, recordedHardware, recordingOf, type RecordedMachine } from '../../../support/hardware/recorded-machines.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

const DEVICES: Readonly<Record<RecordedMachine, readonly Partial<Device>[]>> = {
  'arc-a750': [
    {
      id: 'gpu0',
      vendor: 'intel',
      name: 'Arc A750',
      driver: 'xe',
      backends: ['vulkan'],
      memory: { totalBytes: 8 * GIB, freeBytes: 8 * GIB, useUnknown: true },
      unified: false,
    },
  ],
  'dgx-spark': [
    {
      id: 'gpu0',
      name: 'NVIDIA GB10',
      pciAddress: '000f:01:00.0',
      architecture: 'sm_121',
      backends: ['cuda'],
      memory: { totalBytes: 128_501_256_192, freeBytes: 7_976_902_656 },
      unified: true,
    },
  ],
  'intel-graphics-and-nouveau': [
    { id: 'gpu0', vendor: 'intel', name: 'UHD Graphics 770', driver: 'i915', backends: ['vulkan'], unified: true },
    {
      id: 'gpu1',
      vendor: 'nvidia',
      name: 'GeForce GTX 1060 6GB',
      backends: [],
      unavailable: {
        cuda: 'the GPU uses the driver "nouveau" instead of "nvidia"',
        vulkan: 'the GPU uses the driver "nouveau" instead of "nvidia"',
      },
      memory: undefined,
      unified: false,
    },
  ],
  'macbook-m2-max': [
    {
      id: 'gpu0',
      vendor: 'apple',
      name: 'Apple M2 Max',
      backends: [],
      memory: { totalBytes: 48 * GIB, freeBytes: 27 * GIB },
      unified: true,
    },
  ],
  'raspberry-pi-5': [{ id: 'gpu0', vendor: 'other', driver: 'v3d', path: '/dev/dri/renderD128', backends: ['vulkan'], unified: true }],
  'renoir-without-compute-driver': [
    {
      id: 'gpu0',
      vendor: 'amd',
      backends: ['vulkan'],
      unavailable: { rocm: 'the compute driver is missing: there is no "/dev/kfd"' },
      memory: { totalBytes: 8_596_226_048, freeBytes: 8_430_551_040, dedicatedBytes: 512 * MIB, dedicatedFreeBytes: 374 * MIB },
      unified: true,
    },
  ],
  'notebook-with-two-gpus': [
    {
      id: 'gpu0',
      name: 'NVIDIA GeForce RTX 4070 Laptop GPU',
      backends: ['cuda'],
      memory: { totalBytes: 8188 * MIB, freeBytes: 4970 * MIB },
      unified: false,
    },
    {
      id: 'gpu1',
      name: 'AMD Radeon 890M Graphics',
      architecture: 'gfx1150',
      backends: ['rocm', 'vulkan'],
      memory: { totalBytes: 15.5 * GIB, freeBytes: 16_118_710_272, dedicatedBytes: 512 * MIB, dedicatedFreeBytes: 212 * MIB },
      unified: true,
    },
  ],
  'rtx-3090-and-4090': [
    {
      id: 'gpu0',
      name: 'NVIDIA GeForce RTX 3090',
      pciAddress: '0000:05:00.0',
      architecture: 'sm_86',
      backends: ['cuda'],
      memory: { totalBytes: 24_576 * MIB, freeBytes: 9240 * MIB },
      unified: false,
    },
    {
      id: 'gpu1',
      name: 'NVIDIA GeForce RTX 4090',
      pciAddress: '0000:0a:00.0',
      architecture: 'sm_89',
      memory: { totalBytes: 24_564 * MIB, freeBytes: 24_082 * MIB },
      unified: false,
    },
  ],
  'server-without-gpu': [],
  'strix-halo-128gb': [
    {
      id: 'gpu0',
      name: 'AMD Radeon 8060S Graphics',
      architecture: 'gfx1151',
      backends: ['rocm', 'vulkan'],
      // Of the GTT, 61 GiB are not in use, but the host has only 60 GiB to give.
      memory: { totalBytes: 124.5 * GIB, freeBytes: 60 * GIB + 57 * MIB, dedicatedBytes: 512 * MIB, dedicatedFreeBytes: 57 * MIB },
      unified: true,
    },
    {
      id: 'npu0',
      kind: 'npu',
      vendor: 'amd',
      driver: 'amdxdna',
      architecture: 'xdna2',
      path: '/dev/accel/accel0',
      backends: ['npu'],
      unified: true,
    },
  ],
  'strix-halo-96gb-set-aside': [
    {
      id: 'gpu0',
      memory: { totalBytes: 119_763_415_040, freeBytes: 119_524_339_712, dedicatedBytes: 96 * GIB, dedicatedFreeBytes: 95.80859375 * GIB },
      unified: true,
    },
    { id: 'npu0', kind: 'npu' },
  ],
  w7900: [
    {
      id: 'gpu0',
      name: 'AMD Radeon Pro W7900',
      path: '/dev/dri/renderD129',
      architecture: 'gfx1100',
      backends: ['rocm', 'vulkan'],
      memory: { totalBytes: 48_301_604_864, freeBytes: 48_234_496_000 },
      unified: false,
    },
  ],
};

describe('hardwareOf()', () => {
  for (const name of RECORDED_MACHINES) {
    test(`finds the devices of "${name}"`, () => {
      const { devices } = recordedHardware(name);
      expect(devices).toHaveLength(DEVICES[name].length);
      for (const [index, device] of DEVICES[name].entries()) expect(devices[index]).toMatchObject(device);
    });
  }

  test('finds the CPU and the memory', () => {
    expect(recordedHardware('server-without-gpu')).toMatchObject({
      cpu: { model: 'AMD EPYC 7543 32-Core Processor', architecture: 'x64', threads: 128, cores: 64 },
      memory: { totalBytes: 527_985_408 * 1024, availableBytes: 515_899_392 * 1024 },
    });
    expect(recordedHardware('raspberry-pi-5').cpu).toEqual({ model: 'Raspberry Pi 5 Model B Rev 1.0', architecture: 'arm64', threads: 4 });
    expect(recordedHardware('macbook-m2-max')).toMatchObject({
      cpu: { model: 'Apple M2 Max', threads: 12, cores: 12 },
      memory: { totalBytes: 64 * GIB, availableBytes: 27 * GIB },
    });
  });

  test('finds the CPU of a machine with one thread', () => {
    const recording = recordingOf('server-without-gpu');
    const files = { ...recording.files, '/proc/cpuinfo': 'processor: 0\nmodel name: QEMU Virtual CPU\n' };
    expect(hardwareOf({ ...recording, files }, { kind: 'machine' }).cpu).toMatchObject({ model: 'QEMU Virtual CPU', threads: 1 });
  });

  test('says nothing about devices in a container', () => {
    const recording = recordingOf('w7900');
    const found = hardwareOf({ ...recording, present: [...recording.present, '/run/.containerenv'] }, { kind: 'machine' });
    expect(found).toMatchObject({ devices: [], devicesHidden: expect.stringContaining('in a container'), cpu: { threads: 64 } });
  });

  const without = (recording: HardwareRecording, ...parts: readonly string[]): HardwareRecording => {
    const kept = (path: string): boolean => !parts.some((part) => path.includes(part));
    return {
      ...recording,
      files: Object.fromEntries(Object.entries(recording.files).filter(([path]) => kept(path))),
      links: Object.fromEntries(Object.entries(recording.links).filter(([path]) => kept(path))),
      present: recording.present.filter(kept),
    };
  };
  const devicesOf = (recording: HardwareRecording) => hardwareOf(recording, { kind: 'machine' }).devices;

  test('says why a GPU of AMD cannot compute', () => {
    const recording = recordingOf('w7900');
    expect(devicesOf(without(recording, '/driver'))[0]?.unavailable).toEqual({
      rocm: 'no driver is loaded for the GPU; it needs "amdgpu"',
      vulkan: 'no driver is loaded for the GPU; it needs "amdgpu"',
    });
    expect(devicesOf(without(recording, '/dev/kfd'))[0]).toMatchObject({ backends: ['vulkan'], unavailable: { rocm: expect.any(String) } });
    // The compute driver knows another GPU, and not this one.
    const properties = '/sys/class/kfd/kfd/topology/nodes/1/properties';
    const other = {
      ...recording,
      files: { ...recording.files, [properties]: 'simd_count 80\ngfx_target_version 100300\ndrm_render_minor 130\n' },
    };
    expect(devicesOf(other)[0]?.unavailable).toEqual({ rocm: 'the compute driver of the kernel does not support the GPU' });
    // Nobody but root may read what it knows.
    expect(devicesOf(without(recording, '/topology/'))[0]?.backends).toEqual(['rocm', 'vulkan']);
  });

  test('knows the names of GPUs of NVIDIA, but not their memory, without nvidia-smi', () => {
    const devices = devicesOf({ ...recordingOf('rtx-3090-and-4090'), tools: {} });
    expect(devices.map(({ name }) => name)).toEqual(['NVIDIA GeForce RTX 3090', 'NVIDIA GeForce RTX 4090']);
    expect(devices.map(({ backends, memory }) => [backends, memory])).toEqual([
      [['cuda'], undefined],
      [['cuda'], undefined],
    ]);
  });

  test('offers Vulkan on a card of NVIDIA with the free driver, if that has made a render node', () => {
    const recording = recordingOf('intel-graphics-and-nouveau');
    const node = '/sys/bus/pci/devices/0000:01:00.0/drm/renderD129';
    expect(devicesOf({ ...recording, present: [...recording.present, node] })[1]).toMatchObject({
      path: '/dev/dri/renderD129',
      backends: ['vulkan'],
      unavailable: { cuda: 'the GPU uses the driver "nouveau" instead of "nvidia"' },
    });
  });

  test('does not take render nodes for GPUs that are parts of another GPU, or that compute nothing', () => {
    const recording = recordingOf('w7900');
    const nodeOf = (driver: string) => ({ ...recording.links, '/sys/class/drm/renderD140/device/driver': driver });
    for (const driver of ['amdgpu_xcp_drv', 'vgem']) expect(devicesOf({ ...recording, links: nodeOf(driver) })).toHaveLength(1);
    expect(devicesOf({ ...recording, links: nodeOf('panthor') })).toHaveLength(2);
  });

  test('finds the GPU of the Windows host in WSL, which sysfs does not show', () => {
    const { tools } = recordingOf('rtx-3090-and-4090');
    const devices = devicesOf({ ...recordingOf('server-without-gpu'), tools, present: ['/dev/dxg'] });
    expect(devices).toMatchObject([
      { id: 'gpu0', name: 'NVIDIA GeForce RTX 3090', path: '/dev/dxg', backends: ['cuda'] },
      { id: 'gpu1', backends: ['cuda'] },
    ]);
  });

  test('does not offer an NPU that the server of the provider does not support', () => {
    const recording = recordingOf('strix-halo-128gb');
    const changed = (device: string, driver: string): HardwareRecording => ({
      ...recording,
      files: { ...recording.files, '/sys/bus/pci/devices/0000:c4:00.1/device': device },
      links: { ...recording.links, '/sys/bus/pci/devices/0000:c4:00.1/driver': driver },
    });
    expect(devicesOf(changed('0x1502\n', 'amdxdna'))[1]).toMatchObject({
      architecture: 'xdna1',
      backends: [],
      unavailable: { npu: expect.stringContaining('XDNA 1') },
    });
    expect(devicesOf(changed('0x17f0\n', 'vfio-pci'))[1]).toMatchObject({
      backends: [],
      unavailable: { npu: 'the NPU uses the driver "vfio-pci" instead of "amdxdna"' },
    });
  });

  test('is total: whatever files contain, it returns sensible numbers', () => {
    const garbage = [
      '',
      '\0',
      '-1',
      '0x',
      '99999999999999999999',
      'NaN',
      '1e400',
      '../../x',
      '\n'.repeat(1000),
      '0'.repeat(500),
      '{"a":1}',
    ];
    let turn = 0;
    for (const name of RECORDED_MACHINES) {
      const recording = recordingOf(name);
      for (const path of [...Object.keys(recording.files), ...Object.keys(recording.tools)]) {
        const text = garbage[turn++ % garbage.length] ?? '';
        const spoiled = { ...recording, files: { ...recording.files }, tools: { ...recording.tools } };
        if (path in recording.tools) spoiled.tools[path] = text;
        else spoiled.files[path] = text;
        const { devices, memory, cpu } = hardwareOf(spoiled, { kind: 'machine' });
        expect(cpu.threads).toBeGreaterThan(0);
        for (const amount of [memory?.totalBytes, ...devices.flatMap((device) => [device.memory?.totalBytes, device.memory?.freeBytes])])
          expect(amount ?? 0).toBeGreaterThanOrEqual(0);
        for (const device of devices) expect(device.memory?.freeBytes ?? 0).toBeLessThanOrEqual(device.memory?.totalBytes ?? 0);
      }
    }
    expect(turn).toBeGreaterThan(100);
  });
});
