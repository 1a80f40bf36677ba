/**
 * NVIDIA GPUs: sysfs lists them, `/proc/driver/nvidia` has their names, and only `nvidia-smi` their memory. Pure.
 * https://docs.nvidia.com/deploy/nvidia-smi/index.html
 */
import type { Device, MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, pciFacts, sharedMemory, wrongDriver, sysfsAddress, type Detected, type PciDevice } from './pci-devices.ts';
import type { MachineView } from './machine-view.ts';

export const NVIDIA_PROC = '/proc/driver/nvidia';
/**
 * The GPU of the Windows host in WSL; Linux does not show its PCI address.
 * https://learn.microsoft.com/windows/wsl/tutorials/gpu-compute
 */
export const WSL_DEVICE = '/dev/dxg';

const FIELDS = 'pci.bus_id,name,memory.total,memory.free';
const FORMAT = '--format=csv,noheader,nounits';
/** Older drivers refuse queries with unknown fields. */
export const NVIDIA_SMI = {
  full: ['nvidia-smi', `--query-gpu=${FIELDS},compute_cap`, FORMAT],
  basic: ['nvidia-smi', `--query-gpu=${FIELDS}`, FORMAT],
} as const;

export interface NvidiaSmiGpu {
  /** The address in sysfs. */
  readonly address: string;
  readonly name: string;
  /** `unified`: the GPU uses host memory, as on DGX Spark. https://docs.nvidia.com/dgx/dgx-spark/known-issues.html */
  readonly memory: { readonly totalBytes: number; readonly freeBytes: number } | 'unified' | undefined;
  /** `8.6` */
  readonly computeCapability: string | undefined;
}

/**
 * Lines such as `00000000:01:00.0, NVIDIA GeForce RTX 3090, 24576, 24135, 8.6`, with memory in MiB. Skips other lines.
 */
export function parseNvidiaSmi(output: string): readonly NvidiaSmiGpu[] {
  return output.split('\n').flatMap((line) => {
    const [bus = '', name = '', total = '', free = '', capability] = line.split(',').map((cell) => cell.trim());
    const address = sysfsAddress(bus);
    if (address === undefined) return [];
    const computeCapability = capability !== undefined && /^[0-9]+\.[0-9]+$/.test(capability) ? capability : undefined;
    return [{ address, name, memory: parseMemory(total, free), computeCapability }];
  });
}

function parseMemory(total: string, free: string): NvidiaSmiGpu['memory'] {
  const [totalBytes, freeBytes] = [total, free].map((text) => (/^[0-9]+$/.test(text) ? Number(text) * 1024 * 1024 : undefined));
  if (totalBytes !== undefined && totalBytes > 0 && freeBytes !== undefined)
    return { totalBytes, freeBytes: Math.min(freeBytes, totalBytes) };
  // Other values, such as "[GPU is lost]", are faults.
  return ['[N/A]', 'N/A', '[Not Supported]'].includes(total) ? 'unified' : undefined;
}

export function nvidiaGpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const reported = nvidiaSmiGpus(view).find(({ address }) => address === pci.address);
  const ownName = /^Model:\s*(.*)$/m.exec(view.text(`${NVIDIA_PROC}/gpus/${pci.address}/information`) ?? '')?.[1];
  const name = reported?.name ?? (ownName === 'Unknown' ? undefined : ownName) ?? pci.name;
  const noDriver = wrongDriver('GPU', pci.driver, ['nvidia']);
  const nouveau = pci.driver === 'nouveau' && pci.renderNode !== undefined;
  return {
    kind: 'gpu',
    ...pciFacts({ ...pci, name }, 'nvidia'),
    ...architectureOf(reported),
    ...backendsOf({ cuda: noDriver, vulkan: nouveau ? undefined : (noDriver ?? NO_VULKAN) }),
    ...memoryOf(reported, host),
  };
}

/** This driver requires its own libraries, which images for Vulkan do not have. */
const NO_VULKAN = 'images for Vulkan cannot use the driver of NVIDIA';

/** GPUs of the Windows host in WSL, which sysfs does not show. */
export function nvidiaGpusOfWsl(view: MachineView, host: MemoryAmount | undefined): readonly Detected[] {
  if (!view.has(WSL_DEVICE)) return [];
  return nvidiaSmiGpus(view).map((reported) => ({
    kind: 'gpu',
    vendor: 'nvidia',
    name: reported.name,
    pciAddress: reported.address,
    driver: 'dxgkrnl',
    path: WSL_DEVICE,
    ...architectureOf(reported),
    ...backendsOf({ cuda: undefined }),
    ...memoryOf(reported, host),
  }));
}

function nvidiaSmiGpus(view: MachineView): readonly NvidiaSmiGpu[] {
  return parseNvidiaSmi(view.tool(NVIDIA_SMI.full) ?? view.tool(NVIDIA_SMI.basic) ?? '');
}

function architectureOf(reported: NvidiaSmiGpu | undefined): Pick<Device, 'architecture'> {
  const capability = reported?.computeCapability;
  return capability === undefined ? {} : { architecture: `sm_${capability.replace('.', '')}` };
}

function memoryOf(reported: NvidiaSmiGpu | undefined, host: MemoryAmount | undefined): Pick<Device, 'memory' | 'unified'> {
  if (reported?.memory === 'unified') return { memory: sharedMemory(host), unified: true };
  return { memory: reported?.memory, unified: false };
}
