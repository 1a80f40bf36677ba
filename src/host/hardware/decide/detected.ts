/** What one GPU or NPU was found to be, before all of them get their ids. Types, and what all vendors share. Pure. */
import type { Device, DeviceVendor, MemoryAmount } from '../../../schema/status/hardware.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import type { PciDevice } from './pci-devices.ts';

export type Detected = Omit<Device, 'id'>;

/** Why each backend cannot be used; undefined for one that can. */
export type Judged = Readonly<Partial<Record<Backend, string | undefined>>>;

/** The two fields of a device that follow from what was judged of each backend. */
export function backendsOf(judged: Judged): Pick<Device, 'backends' | 'unavailable'> {
  const entries = BACKENDS_OF_DEVICES.filter((backend) => Object.hasOwn(judged, backend));
  const unavailable = Object.fromEntries(entries.flatMap((backend) => (judged[backend] === undefined ? [] : [[backend, judged[backend]]])));
  return {
    backends: entries.filter((backend) => judged[backend] === undefined),
    ...(Object.keys(unavailable).length === 0 ? {} : { unavailable }),
  };
}

const BACKENDS_OF_DEVICES: readonly Backend[] = ['cuda', 'rocm', 'vulkan', 'npu'];

export function pciFacts(pci: PciDevice, vendor: DeviceVendor): Pick<Device, 'vendor' | 'name' | 'pciAddress' | 'driver' | 'path'> {
  const path = pci.renderNode === undefined ? undefined : `/dev/dri/${pci.renderNode}`;
  return {
    vendor,
    ...(pci.name === undefined ? {} : { name: pci.name }),
    pciAddress: pci.address,
    ...(pci.driver === undefined ? {} : { driver: pci.driver }),
    ...(path === undefined ? {} : { path }),
  };
}

/** Why a GPU whose driver should be one of `wanted` cannot be used; undefined if it is. */
export function wrongDriver(kind: 'GPU' | 'NPU', driver: string | undefined, wanted: readonly string[]): string | undefined {
  if (driver !== undefined && wanted.includes(driver)) return undefined;
  const names = wanted.map((name) => `"${name}"`).join(' or ');
  return driver === undefined
    ? `no driver is loaded for the ${kind}; it needs ${names}`
    : `the ${kind} uses the driver "${driver}" instead of ${names}`;
}

/** Of a device that computes in the memory of the host; `limitBytes` is how much of it the device may use. */
export function sharedMemory(host: MemoryAmount | undefined, limitBytes = Number.POSITIVE_INFINITY): Device['memory'] {
  if (host === undefined) return undefined;
  return { totalBytes: Math.min(host.totalBytes, limitBytes), freeBytes: Math.min(host.availableBytes, limitBytes) };
}
