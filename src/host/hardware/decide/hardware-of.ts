/** What a machine consists of, from what was read of it. Pure and total: whatever a file contains, the worst result is an unknown value. */
import { memoryOfHost } from '../../decide/host-memory.ts';
import type { Device, Hardware, HardwareSource, MemoryAmount } from '../../../schema/status/hardware.ts';
import type { HardwareRecording } from '../../../schema/hardware-recording.ts';
import { amdGpu } from './amd-gpu.ts';
import { appleCpu, appleGpu, appleMemory } from './apple.ts';
import type { Detected } from './detected.ts';
import { intelGpu } from './intel-gpu.ts';
import { viewOf, type MachineView } from './machine-view.ts';
import { pciNpu } from './npu.ts';
import { nvidiaGpu, nvidiaGpusOfWsl } from './nvidia-gpu.ts';
import { otherPciGpu, platformGpus } from './other-gpus.ts';
import { PCI_VENDOR, pciDevices, type PciDevice } from './pci-devices.ts';
import { linuxCpu } from './read-cpu.ts';

export const MEMINFO = '/proc/meminfo';
/** In a container, `/dev` is not that of the machine. podman and docker create these files. */
export const CONTAINER_FILES: readonly string[] = ['/run/.containerenv', '/.dockerenv'];

const HIDDEN = 'the service runs in a container, which does not show the devices of the machine';

/** Without the programs of providers. */
export function hardwareOf(recording: HardwareRecording, source: HardwareSource): Hardware {
  const view = viewOf(recording);
  const apple = view.platform === 'darwin';
  const memory = (apple ? appleMemory(view) : memoryOfHost(view.text(MEMINFO) ?? '')) ?? plainMemory(recording);
  const cpu = { architecture: recording.architecture, threads: 1, ...(apple ? appleCpu(view) : linuxCpu(view)) };
  if (CONTAINER_FILES.some((file) => view.has(file))) return { source, cpu, memory, devices: [], devicesHidden: HIDDEN, programs: {} };
  const detected = apple ? appleGpu(view, memory) : linuxDevices(view, memory);
  return { source, cpu, memory, devices: withIds(detected), programs: {} };
}

function plainMemory({ memory }: HardwareRecording): MemoryAmount | undefined {
  return memory === undefined ? undefined : { totalBytes: memory.total_bytes, availableBytes: memory.available_bytes };
}

function linuxDevices(view: MachineView, memory: MemoryAmount | undefined): readonly Detected[] {
  const pci = pciDevices(view);
  const nodes = new Set(pci.flatMap(({ renderNode }) => renderNode ?? []));
  return [
    ...pci.flatMap((device) => (device.kind === 'npu' ? [pciNpu(view, device, memory)] : pciGpu(view, device, memory))),
    ...nvidiaGpusOfWsl(view, memory),
    ...platformGpus(view, nodes, memory),
  ];
}

function pciGpu(view: MachineView, device: PciDevice, memory: MemoryAmount | undefined): readonly Detected[] {
  if (device.vendor === PCI_VENDOR.amd) return [amdGpu(view, device, memory)];
  if (device.vendor === PCI_VENDOR.nvidia) return [nvidiaGpu(view, device, memory)];
  if (device.vendor === PCI_VENDOR.intel) return [intelGpu(view, device, memory)];
  return otherPciGpu(device);
}

/** Those on the PCI bus come in the order of their addresses, before the others. */
function withIds(detected: readonly Detected[]): readonly Device[] {
  return (['gpu', 'npu'] as const).flatMap((kind) =>
    detected
      .filter((device) => device.kind === kind)
      .toSorted((one, other) => (one.pciAddress ?? '~').localeCompare(other.pciAddress ?? '~', 'en'))
      .map((device, index) => ({ id: `${kind}${index}`, ...device })),
  );
}
