/** GPUs of other vendors, and those that are not on the PCI bus, as on ARM boards: whatever has a render node, which programs for Vulkan open. Pure. */
import type { MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, pciFacts, sharedMemory, type Detected } from './detected.ts';
import type { MachineView } from './machine-view.ts';
import type { PciDevice } from './pci-devices.ts';

export const DRM_DIRECTORY = '/sys/class/drm';

/** Drivers with a render node behind which there is no GPU. */
const NOT_GPUS: ReadonlySet<string> = new Set(['vgem', 'vkms']);

/** Without a render node, it is the graphics chip of a server, which computes nothing. */
export function otherPciGpu(pci: PciDevice): readonly Detected[] {
  if (pci.renderNode === undefined) return [];
  return [{ kind: 'gpu', ...pciFacts(pci, 'other'), ...backendsOf({ vulkan: undefined }), memory: undefined, unified: false }];
}

export function platformGpus(view: MachineView, pciNodes: ReadonlySet<string>, host: MemoryAmount | undefined): readonly Detected[] {
  const nodes = view.names(DRM_DIRECTORY).filter((name) => name.startsWith('renderD') && !pciNodes.has(name));
  return nodes.flatMap((node) => {
    const driver = view.link(`${DRM_DIRECTORY}/${node}/device/driver`);
    // The parts into which amdgpu divides a GPU have nodes of their own that are on no bus; the GPU itself is on the PCI bus.
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
