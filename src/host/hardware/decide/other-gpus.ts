/**
 * GPUs of Intel, Apple and other vendors, and GPUs outside the PCI bus, as on ARM boards: anything with a render node.
 * Pure.
 */
import type { MemoryAmount, Device, Cpu } from '../../../schema/status/hardware.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import { backendsOf, pciFacts, sharedMemory, wrongDriver, type Detected, type PciDevice } from './pci-devices.ts';
import { parseNumber, type MachineView } from './machine-view.ts';

export const DRM_DIRECTORY = '/sys/class/drm';

/** Drivers with a render node but without a GPU. */
const NOT_GPUS: ReadonlySet<string> = new Set(['vgem', 'vkms']);

/** A device without a render node is the display chip of a server. */
export function otherPciGpu(pci: PciDevice): readonly Detected[] {
  if (pci.renderNode === undefined) return [];
  return [{ kind: 'gpu', ...pciFacts(pci, 'other'), ...backendsOf({ vulkan: undefined }), memory: undefined, unified: false }];
}

export function platformGpus(view: MachineView, pciNodes: ReadonlySet<string>, host: MemoryAmount | undefined): readonly Detected[] {
  const nodes = view.names(DRM_DIRECTORY).filter((name) => name.startsWith('renderD') && !pciNodes.has(name));
  return nodes.flatMap((node) => {
    const driver = view.link(`${DRM_DIRECTORY}/${node}/device/driver`);
    // Partitions of an amdgpu GPU have nodes outside any bus; the GPU itself is on the PCI bus.
    if (driver === undefined || NOT_GPUS.has(driver) || driver.startsWith('amdgpu')) return [];
    return [
      {
        kind: 'gpu' as const,
        vendor: driver === 'asahi' ? ('apple' as const) : ('other' as const),
        driver,
        path: `/dev/dri/${node}`,
        ...backendsOf({ vulkan: undefined }),
        memory: sharedMemory(host),
        unified: true,
      },
    ];
  });
}

/**
 * Files of each `tile<n>` with the size of dedicated memory, which only xe reports; no driver reports its use to
 * everyone. https://gitlab.freedesktop.org/drm/igt-gpu-tools (tests/intel/xe_sysfs_tile.c)
 */
export const XE_MEMORY_FILES: readonly string[] = ['physical_vram_size_bytes', 'memory/physical_vram_size_bytes'];

/** The address of all integrated Intel GPUs. */
const INTEGRATED = '0000:00:02.0';
/** Share of host memory that Mesa offers, unless `ANV_SYS_MEM_LIMIT` is set. https://docs.mesa3d.org/envvars.html */
const MESA_SHARE = 0.75;

export function intelGpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const unified = pci.address === INTEGRATED;
  const noDriver = wrongDriver('GPU', pci.driver, ['i915', 'xe']);
  const noNode = pci.renderNode === undefined ? 'the GPU has no "/dev/dri/renderD*"' : undefined;
  const limitBytes = host === undefined ? undefined : Math.floor(host.totalBytes * MESA_SHARE);
  return {
    kind: 'gpu',
    ...pciFacts(pci, 'intel'),
    ...backendsOf({ vulkan: noDriver ?? noNode }),
    memory: unified ? sharedMemory(host, limitBytes) : ownMemory(view, pci),
    unified,
  };
}

function ownMemory(view: MachineView, { directory }: PciDevice): Device['memory'] {
  const tiles = view.names(directory).filter((name) => /^tile[0-9]+$/.test(name));
  const sizes = tiles.map(
    (tile) => XE_MEMORY_FILES.map((file) => view.number(`${directory}/${tile}/${file}`)).find((size) => size !== undefined) ?? 0,
  );
  const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
  return totalBytes === 0 ? undefined : { totalBytes, freeBytes: totalBytes, useUnknown: true };
}

const KEYS = ['hw.memsize', 'hw.physicalcpu', 'hw.logicalcpu', 'machdep.cpu.brand_string', 'iogpu.wired_limit_mb'] as const;
export const SYSCTL: readonly [string, ...string[]] = ['sysctl', ...KEYS];
export const VM_STAT: readonly [string, ...string[]] = ['vm_stat'];

/** Lines such as `hw.memsize: 68719476736`, one per known key. */
function sysctl(view: MachineView, key: (typeof KEYS)[number]): string | undefined {
  const line = view
    .tool(SYSCTL)
    ?.split('\n')
    .find((each) => each.startsWith(`${key}:`));
  return line?.slice(key.length + 1).trim();
}

export function appleCpu(view: MachineView): Partial<Cpu> {
  const model = sysctl(view, 'machdep.cpu.brand_string');
  return defined({ model, threads: parseNumber(sysctl(view, 'hw.logicalcpu')), cores: parseNumber(sysctl(view, 'hw.physicalcpu')) });
}

/** Unused file pages (inactive, speculative, purgeable) count as available, because the kernel reclaims them first. */
export function appleMemory(view: MachineView): MemoryAmount | undefined {
  const totalBytes = parseNumber(sysctl(view, 'hw.memsize'));
  const text = view.tool(VM_STAT);
  const pageBytes = parseNumber(/page size of ([0-9]+) bytes/.exec(text ?? '')?.[1]);
  if (totalBytes === undefined || text === undefined || pageBytes === undefined) return undefined;
  const pages = (name: string): number => parseNumber(new RegExp(`^Pages ${name}:\\s+([0-9]+)\\.$`, 'm').exec(text)?.[1]) ?? 0;
  const available = ['free', 'inactive', 'speculative', 'purgeable'].reduce((sum, name) => sum + pages(name), 0) * pageBytes;
  return { totalBytes, availableBytes: Math.min(totalBytes, available) };
}

/**
 * Share of memory that Metal offers, unless `iogpu.wired_limit_mb` is set.
 * https://github.com/gpustack/gpustack/issues/1375
 */
const METAL_SHARE = 0.75;

/** No backend runs on it: Linux containers cannot use Apple GPUs, whose programs use Metal. */
export function appleGpu(view: MachineView, host: MemoryAmount | undefined): readonly Detected[] {
  const name = sysctl(view, 'machdep.cpu.brand_string');
  if (name === undefined || !name.startsWith('Apple ')) return [];
  const limitMb = parseNumber(sysctl(view, 'iogpu.wired_limit_mb')) ?? 0;
  const limitBytes = limitMb > 0 ? limitMb * 1024 * 1024 : Math.floor((host?.totalBytes ?? 0) * METAL_SHARE);
  const vulkan = 'macOS has no driver for Vulkan';
  return [{ kind: 'gpu', vendor: 'apple', name, ...backendsOf({ vulkan }), memory: sharedMemory(host, limitBytes), unified: true }];
}
