/** Derives the hardware of a machine from its files. Pure and total: invalid files only yield unknown values. */
import type {
  Device,
  Hardware,
  HardwareSource,
  MemoryAmount,
  HardwareRecording,
  DeviceVendor,
  Cpu,
} from '../../../schema/status/hardware.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import { amdGpu } from './amd-gpu.ts';
import { appleCpu, appleGpu, appleMemory, intelGpu, otherPciGpu, platformGpus } from './other-gpus.ts';
import {
  PCI_VENDOR,
  pciDevices,
  backendsOf,
  sharedMemory,
  wrongDriver,
  XDNA_OF_DEVICE,
  type Detected,
  type PciDevice,
} from './pci-devices.ts';
import { keepLines, viewOf, type MachineView } from './machine-view.ts';
import { nvidiaGpu, nvidiaGpusOfWsl } from './nvidia-gpu.ts';

export const MEMINFO = '/proc/meminfo';
/** podman and docker create these files in containers, where `/dev` is not the machine's. */
export const CONTAINER_FILES: readonly string[] = ['/run/.containerenv', '/.dockerenv'];

const HIDDEN = 'the service runs in a container, which does not show the devices of the machine';

/** Leaves the programs of providers empty. */
export function hardwareOf(recording: HardwareRecording, source: HardwareSource): Hardware {
  const view = viewOf(recording);
  const apple = view.platform === 'darwin';
  const { total_bytes: totalBytes, available_bytes: availableBytes } = recording.memory ?? {};
  const plain = totalBytes === undefined || availableBytes === undefined ? undefined : { totalBytes, availableBytes };
  const memory = (apple ? appleMemory(view) : memoryOfHost(view.text(MEMINFO) ?? '')) ?? plain;
  const cpu = { architecture: recording.architecture, threads: 1, ...(apple ? appleCpu(view) : linuxCpu(view)) };
  if (CONTAINER_FILES.some((file) => view.has(file))) return { source, cpu, memory, devices: [], devicesHidden: HIDDEN, programs: {} };
  const detected = apple ? appleGpu(view, memory) : linuxDevices(view, memory);
  return { source, cpu, memory, devices: withIds(detected), programs: {} };
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

/** PCI devices come first, by address. */
function withIds(detected: readonly Detected[]): readonly Device[] {
  return (['gpu', 'npu'] as const).flatMap((kind) =>
    detected
      .filter((device) => device.kind === kind)
      .toSorted((one, other) => (one.pciAddress ?? '~').localeCompare(other.pciAddress ?? '~', 'en'))
      .map((device, index) => ({ id: `${kind}${index}`, ...device })),
  );
}

/** NPUs are devices of the accelerator subsystem. https://docs.kernel.org/accel/introduction.html */
function pciNpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const architecture = pci.vendor === PCI_VENDOR.amdProcessor ? XDNA_OF_DEVICE.get(pci.device) : undefined;
  // The name of the board in the driver, such as "NPU Strix Halo".
  const name = view.text(`${pci.directory}/vbnv`) ?? pci.name;
  return {
    kind: 'npu',
    vendor: vendorOf(pci.vendor),
    pciAddress: pci.address,
    ...defined({ name, driver: pci.driver, architecture, path: pci.accelNode && `/dev/accel/${pci.accelNode}` }),
    ...backendsOf({ npu: whyUnusable(pci, architecture) ?? whyTooOld(view, pci) }),
    memory: sharedMemory(host),
    unified: true,
  };
}

/** The server of the provider "npu" requires XDNA 2. https://github.com/lemonade-sdk/lemonade/issues/3492 */
function whyUnusable(pci: PciDevice, architecture: string | undefined): string | undefined {
  if (architecture === undefined) return 'the NPU is not one of AMD';
  if (architecture === 'xdna1') return 'the NPU is of the generation XDNA 1, and XDNA 2 is needed';
  return wrongDriver('NPU', pci.driver, ['amdxdna']) ?? (pci.accelNode === undefined ? 'the NPU has no "/dev/accel/accel*"' : undefined);
}

export const KERNEL_FILE = '/proc/sys/kernel/osrelease';
/** What FastFlowLM's own check demands (`flm validate`); it looks at the kernel even where the driver is a package. */
const LEAST = { kernel: [6, 17], firmware: [1, 1, 0, 0] } as const;

/** A version that cannot be read is not judged. */
function whyTooOld(view: MachineView, { directory }: PciDevice): string | undefined {
  const kernel = view.text(KERNEL_FILE);
  if (isOlder(kernel, LEAST.kernel))
    return `the kernel is ${kernel?.trim()}, and the server of the NPU needs ${LEAST.kernel.join('.')} or newer`;
  const firmware = view.text(`${directory}/fw_version`);
  const update = 'update the package with the firmware (linux-firmware)';
  if (isOlder(firmware, LEAST.firmware))
    return `the firmware of the NPU is ${firmware?.trim()}, and ${LEAST.firmware.join('.')} is needed: ${update}`;
  return undefined;
}

function isOlder(text: string | undefined, least: readonly number[]): boolean {
  const found =
    /^\d+(?:\.\d+)*/
      .exec(text?.trim() ?? '')?.[0]
      .split('.')
      .map(Number) ?? [];
  const index = least.findIndex((part, at) => (found[at] ?? 0) !== part);
  return found.length > 0 && index !== -1 && (found[index] ?? 0) < (least[index] ?? 0);
}

function vendorOf(vendor: number): DeviceVendor {
  if (vendor === PCI_VENDOR.amdProcessor || vendor === PCI_VENDOR.amd) return 'amd';
  return vendor === PCI_VENDOR.intel ? 'intel' : 'other';
}

export const CPUINFO = '/proc/cpuinfo';
/** Names the board if the CPU has no name: `Raspberry Pi 5 Model B Rev 1.0`. */
export const BOARD_FILE = '/proc/device-tree/model';

const KEPT = /^(?:processor|model name|physical id|core id)\s*:.*$/gm;

/**
 * Keeps only parsed lines: the file has some hundred kilobytes on large servers, and the serial number of a Raspberry
 * Pi.
 */
export const pickCpuinfo = (text: string): string =>
  keepLines(text, KEPT)
    .replaceAll(/^([\w ]+?)[ \t]*:[ \t]*/gm, '$1: ')
    .replaceAll(/[ \t]+$/gm, '');

function linuxCpu(view: MachineView): Partial<Cpu> {
  const text = view.text(CPUINFO) ?? '';
  const values = (key: string): readonly string[] =>
    [...text.matchAll(new RegExp(`^${key}\\s*: *(.*)$`, 'gm'))].map(([, value = '']) => value.trim());
  const model = values('model name')[0] ?? view.text(BOARD_FILE);
  const threads = values('processor').length;
  const sockets = values('physical id');
  const cores = new Set(values('core id').map((core, index) => `${sockets[index] ?? ''}/${core}`)).size;
  return defined({ model, threads: threads || undefined, cores: cores || undefined });
}

/** Parses `/proc/meminfo`. "Available" includes the page cache, but no swap. */
export function memoryOfHost(meminfo: string): MemoryAmount | undefined {
  const totalBytes = bytesOfKey(meminfo, 'MemTotal');
  const availableBytes = bytesOfKey(meminfo, 'MemAvailable') ?? bytesOfKey(meminfo, 'MemFree');
  return totalBytes === undefined || availableBytes === undefined ? undefined : { totalBytes, availableBytes };
}

/** Kernels write `RssAnon:	    1234 kB`. */
export function bytesOfKey(text: string, key: string): number | undefined {
  const found = new RegExp(`^${key}:\\s+(\\d{1,15}) kB$`, 'm').exec(text)?.[1];
  return found === undefined ? undefined : Number(found) * 1024;
}

/** Parses `/proc/self/cgroup` into our group and its parents, each of which may limit memory. */
export function cgroupPaths(selfCgroup: string): readonly { readonly version: 1 | 2; readonly path: string }[] {
  return selfCgroup
    .split('\n')
    .map((line) => /^([0-9]+):([^:]*):(\/.*)$/.exec(line))
    .flatMap((match) => {
      const [, number, controllers = '', path = '/'] = match ?? [];
      if (match === null || path.split('/').includes('..')) return [];
      const version = number === '0' && controllers === '' ? 2 : controllers.split(',').includes('memory') ? 1 : undefined;
      return version === undefined ? [] : parentsOf(path).map((each): { version: 1 | 2; path: string } => ({ version, path: each }));
    });
}

function parentsOf(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  return parts.map((_, index) => `/${parts.slice(0, parts.length - index).join('/')}`).concat('/');
}

/** Undefined if the group has no limit. Inactive cache counts as free, because the kernel reclaims it first. */
export function memoryOfCgroup(limit: string | undefined, usage: string | undefined, stat: string | undefined): MemoryAmount | undefined {
  const totalBytes = Number(limit?.trim() || Number.NaN);
  const used = Number(usage?.trim() || Number.NaN);
  if (!Number.isFinite(totalBytes) || !Number.isFinite(used)) return undefined;
  const inactive = Number(/^(?:total_)?inactive_file ([0-9]+)$/m.exec(stat ?? '')?.[1] ?? 0);
  return { totalBytes, availableBytes: Math.min(totalBytes, Math.max(0, totalBytes - Math.max(0, used - inactive))) };
}
