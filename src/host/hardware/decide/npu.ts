/** NPUs: devices of the kernel's subsystem for accelerators. https://docs.kernel.org/accel/introduction.html Pure. */
import type { DeviceVendor, MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, sharedMemory, wrongDriver, type Detected } from './detected.ts';
import type { MachineView } from './machine-view.ts';
import { PCI_VENDOR, XDNA_OF_DEVICE, type PciDevice } from './pci-devices.ts';

export function pciNpu(view: MachineView, pci: PciDevice, host: MemoryAmount | undefined): Detected {
  const architecture = pci.vendor === PCI_VENDOR.amdProcessor ? XDNA_OF_DEVICE.get(pci.device) : undefined;
  // "NPU Strix Halo": the driver's name of the board.
  const name = view.text(`${pci.directory}/vbnv`) ?? pci.name;
  return {
    kind: 'npu',
    vendor: vendorOf(pci.vendor),
    ...(name === undefined ? {} : { name }),
    pciAddress: pci.address,
    ...(pci.driver === undefined ? {} : { driver: pci.driver }),
    ...(architecture === undefined ? {} : { architecture }),
    ...(pci.accelNode === undefined ? {} : { path: `/dev/accel/${pci.accelNode}` }),
    ...backendsOf({ npu: whyUnusable(pci, architecture) }),
    memory: sharedMemory(host),
    unified: true,
  };
}

/** The server of the provider "npu" runs on XDNA 2 only. https://github.com/lemonade-sdk/lemonade/issues/3492 */
function whyUnusable(pci: PciDevice, architecture: string | undefined): string | undefined {
  if (architecture === undefined) return 'the NPU is not one of AMD';
  if (architecture === 'xdna1') return 'the NPU is of the generation XDNA 1, and XDNA 2 is needed';
  return wrongDriver('NPU', pci.driver, ['amdxdna']) ?? (pci.accelNode === undefined ? 'the NPU has no "/dev/accel/accel*"' : undefined);
}

function vendorOf(vendor: number): DeviceVendor {
  if (vendor === PCI_VENDOR.amdProcessor || vendor === PCI_VENDOR.amd) return 'amd';
  return vendor === PCI_VENDOR.intel ? 'intel' : 'other';
}
