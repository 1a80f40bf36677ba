/**
 * AMD GPUs: memory as reported by amdgpu in sysfs (https://docs.kernel.org/gpu/amdgpu/driver-misc.html), and support by
 * the compute driver (`/sys/class/kfd/kfd/topology`, which names GPUs by render node). Pure.
 */
import type { Device, MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, pciFacts, wrongDriver, type Detected, type PciDevice } from './pci-devices.ts';
import { parseNumber, type MachineView } from './machine-view.ts';

export const KFD_NODES = '/sys/class/kfd/kfd/topology/nodes';
export const KFD_PROPERTIES: readonly string[] = ['cpu_cores_count', 'simd_count', 'gfx_target_version', 'drm_render_minor'];
/**
 * Lines of `device, revision, name`; part of libdrm.
 * https://gitlab.freedesktop.org/mesa/drm/-/blob/main/data/amdgpu.ids
 */
export const AMDGPU_IDS_FILE = '/usr/share/libdrm/amdgpu.ids';
export const AMDGPU_MEMORY_FILES = ['mem_info_vram_total', 'mem_info_vram_used', 'mem_info_gtt_total', 'mem_info_gtt_used'] as const;
/** Version of the graphics block. In sysfs since Linux 5.18, even without the compute driver. */
export const IP_DISCOVERY = 'ip_discovery/die/0/GC/0';

/**
 * Targets of integrated GPUs, except MI300A, which has the target of MI300X.
 * https://llvm.org/docs/AMDGPUUsage.html#processors (column "dGPU/APU")
 */
const APU_TARGETS: ReadonlySet<string> = new Set(
  'gfx700 gfx705 gfx801 gfx810 gfx902 gfx909 gfx90c gfx1013 gfx1033 gfx1035 gfx1036 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153'.split(' '),
);
const MI300A = 0x74a0;
/**
 * Integrated GPUs by the version of their graphics block. drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c (`AMD_IS_APU`)
 */
const APU_BLOCKS: ReadonlySet<string> = new Set(
  '9.1.0 9.2.2 9.3.0 10.1.3 10.1.4 10.3.1 10.3.3 10.3.6 10.3.7 11.0.1 11.0.4 11.5.0 11.5.1 11.5.2 11.5.3 11.5.4 11.5.6 11.7.0'.split(' '),
);

export function amdGpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const node = kfdNodes(view).find(({ renderMinor }) => `renderD${renderMinor}` === pci.renderNode);
  const architecture = node?.target;
  const unified =
    node?.hasCpu === true || pci.device === MI300A || APU_TARGETS.has(architecture ?? '') || APU_BLOCKS.has(blockVersion(view, pci));
  const noDriver = wrongDriver('GPU', pci.driver, ['amdgpu']);
  const noNode = pci.renderNode === undefined ? 'the GPU has no "/dev/dri/renderD*"' : undefined;
  return {
    kind: 'gpu',
    ...pciFacts({ ...pci, name: marketingName(view, pci) ?? pci.name }, 'amd'),
    ...(architecture === undefined ? {} : { architecture }),
    ...backendsOf({ vulkan: noDriver ?? noNode, rocm: noDriver ?? noNode ?? whyNoCompute(view, node) }),
    memory: unified ? unifiedMemory(view, pci, host) : ownMemory(view, pci),
    unified,
  };
}

interface KfdNode {
  readonly renderMinor: number;
  readonly target: string | undefined;
  /** An APU was a single node with its CPU until Linux 6. */
  readonly hasCpu: boolean;
}

function kfdNodes(view: MachineView): readonly KfdNode[] {
  return view.names(KFD_NODES).flatMap((name) => {
    const text = view.text(`${KFD_NODES}/${name}/properties`);
    if (text === undefined) return [];
    const property = (key: string): number => parseNumber(new RegExp(`^${key} ([0-9]+)$`, 'm').exec(text)?.[1]) ?? 0;
    if (property('simd_count') === 0) return [];
    const target = targetName(property('gfx_target_version'));
    return [{ renderMinor: property('drm_render_minor'), target, hasCpu: property('cpu_cores_count') > 0 }];
  });
}

/**
 * `110501` is gfx1151 and `90010` is gfx90a: minor version and stepping are two decimal digits each, in hexadecimal in
 * the name.
 */
export function targetName(version: number): string | undefined {
  if (version < 10_000) return undefined;
  return `gfx${Math.floor(version / 10_000)}${(Math.floor(version / 100) % 100).toString(16)}${(version % 100).toString(16)}`;
}

function blockVersion(view: MachineView, { directory }: PciDevice): string {
  return ['major', 'minor', 'revision'].map((file) => view.number(`${directory}/${IP_DISCOVERY}/${file}`) ?? '').join('.');
}

function whyNoCompute(view: MachineView, node: KfdNode | undefined): string | undefined {
  if (!view.has('/dev/kfd')) return 'the compute driver is missing: there is no "/dev/kfd"';
  // Node properties are not readable everywhere. Then the device file decides.
  if (node !== undefined || kfdNodes(view).length === 0) return undefined;
  return 'the compute driver of the kernel does not support the GPU';
}

function ownMemory(view: MachineView, { directory }: PciDevice): Device['memory'] {
  const totalBytes = view.number(`${directory}/mem_info_vram_total`);
  const usedBytes = view.number(`${directory}/mem_info_vram_used`);
  if (totalBytes === undefined || totalBytes === 0) return undefined;
  if (usedBytes === undefined) return { totalBytes, freeBytes: totalBytes, useUnknown: true };
  return { totalBytes, freeBytes: Math.max(0, totalBytes - usedBytes) };
}

/**
 * An APU uses both memory set aside by the firmware (VRAM) and host memory up to a limit (GTT).
 * https://github.com/Syllo/nvtop/pull/428
 */
function unifiedMemory(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Device['memory'] {
  const dedicated = ownMemory(view, pci);
  const limitBytes = view.number(`${pci.directory}/mem_info_gtt_total`) ?? 0;
  const usedBytes = view.number(`${pci.directory}/mem_info_gtt_used`) ?? 0;
  if (dedicated === undefined && limitBytes === 0) return undefined;
  const sharedFree = Math.min(Math.max(0, limitBytes - usedBytes), host?.availableBytes ?? Number.POSITIVE_INFINITY);
  const [dedicatedBytes, dedicatedFreeBytes] = [dedicated?.totalBytes ?? 0, dedicated?.freeBytes ?? 0];
  return { totalBytes: dedicatedBytes + limitBytes, freeBytes: dedicatedFreeBytes + sharedFree, dedicatedBytes, dedicatedFreeBytes };
}

function marketingName(view: MachineView, { directory, device }: PciDevice): string | undefined {
  const own = view.text(`${directory}/product_name`);
  if (own !== undefined) return own;
  const revision = view.number(`${directory}/revision`);
  return revision === undefined ? undefined : nameInIds(view.text(AMDGPU_IDS_FILE) ?? '', device, revision);
}

/** Keeps only the line about one GPU. */
export function pickAmdgpuIds(list: string, device: number, revision: number): string {
  return `${device.toString(16)}, ${revision.toString(16)}, ${nameInIds(list, device, revision) ?? ''}\n`;
}

function nameInIds(list: string, device: number, revision: number): string | undefined {
  const name = new RegExp(`^0*${device.toString(16)},\\s*0*${revision.toString(16)},[ \\t]*(\\S.*)$`, 'im').exec(list)?.[1];
  return name?.trim();
}
