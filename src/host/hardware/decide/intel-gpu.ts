/** GPUs of Intel. Of the drivers, only xe reports the size of the memory that a card has of its own, and none reports to everyone how much is in use. Pure. */
import type { Device, MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, pciFacts, sharedMemory, wrongDriver, type Detected } from './detected.ts';
import type { MachineView } from './machine-view.ts';
import type { PciDevice } from './pci-devices.ts';

/** In each `tile<n>` of a card. https://gitlab.freedesktop.org/drm/igt-gpu-tools (tests/intel/xe_sysfs_tile.c); later kernels have it below `memory`. */
export const XE_MEMORY_FILES: readonly string[] = ['physical_vram_size_bytes', 'memory/physical_vram_size_bytes'];

/** The address of every GPU that is part of an Intel processor. */
const INTEGRATED = '0000:00:02.0';
/** Mesa offers this part of the host's memory, unless `ANV_SYS_MEM_LIMIT` is set. https://docs.mesa3d.org/envvars.html */
const SHARE_OF_HOST = 0.75;

export function intelGpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const unified = pci.address === INTEGRATED;
  const noDriver = wrongDriver('GPU', pci.driver, ['i915', 'xe']);
  const noNode = pci.renderNode === undefined ? 'the GPU has no "/dev/dri/renderD*"' : undefined;
  const limitBytes = host === undefined ? undefined : Math.floor(host.totalBytes * SHARE_OF_HOST);
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
