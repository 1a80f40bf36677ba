/** GPUs and NPUs on the PCI bus, as in sysfs. https://docs.kernel.org/PCI/sysfs-pci.html Pure. */
import { parseNumber, type MachineView } from './machine-view.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import type { Device, DeviceVendor, MemoryAmount } from '../../../schema/status/hardware.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';

export const PCI_DIRECTORY = '/sys/bus/pci/devices';
export const PCI_IDS_FILES: readonly string[] = ['/usr/share/hwdata/pci.ids', '/usr/share/misc/pci.ids'];

export const PCI_VENDOR = { amd: 0x1002, amdProcessor: 0x1022, intel: 0x8086, nvidia: 0x10de } as const;

export interface PciDevice {
  /** `0000:c4:00.0` */
  readonly address: string;
  readonly directory: string;
  readonly vendor: number;
  readonly device: number;
  readonly driver: string | undefined;
  /** `renderD128` */
  readonly renderNode: string | undefined;
  /** `accel0` */
  readonly accelNode: string | undefined;
  /** Name in the list of PCI ids, if there is one. */
  readonly name: string | undefined;
}

/** The first byte of a class code. https://pci-ids.ucw.cz/read/PD */
const DISPLAY = 0x03;
const PROCESSING_ACCELERATOR = 0x12;

/**
 * AMD NPUs, whose class is signal processor: `0x1502` is XDNA 1 (Phoenix, Hawk Point), `0x17f0` is XDNA 2 (Strix, Strix
 * Halo, Krackan). https://github.com/amd/xdna-driver (amdxdna_pci_drv.c)
 */
export const XDNA_OF_DEVICE: ReadonlyMap<number, string> = new Map([
  [0x1502, 'xdna1'],
  [0x17f0, 'xdna2'],
]);

type PciKind = 'gpu' | 'npu';

/** Undefined if no model can run on this kind of device. */
export function pciKindOf(classCode: number | undefined, vendor: number | undefined, device: number | undefined): PciKind | undefined {
  if (vendor === PCI_VENDOR.amdProcessor && device !== undefined && XDNA_OF_DEVICE.has(device)) return 'npu';
  const base = classCode === undefined ? undefined : classCode >> 16;
  if (base === DISPLAY) return 'gpu';
  // Accelerators of AMD and NVIDIA are GPUs without a display, such as MI300X; Intel's is its NPU.
  // https://github.com/jaypipes/ghw/issues/383
  if (base !== PROCESSING_ACCELERATOR) return undefined;
  return vendor === PCI_VENDOR.amd || vendor === PCI_VENDOR.nvidia ? 'gpu' : 'npu';
}

export function pciDevices(view: MachineView): readonly (PciDevice & { readonly kind: PciKind })[] {
  const list = PCI_IDS_FILES.map((file) => view.text(file)).find((text) => text !== undefined) ?? '';
  return view.names(PCI_DIRECTORY).flatMap((address) => {
    const directory = `${PCI_DIRECTORY}/${address}`;
    const vendor = view.number(`${directory}/vendor`);
    const device = view.number(`${directory}/device`);
    const kind = pciKindOf(view.number(`${directory}/class`), vendor, device);
    if (kind === undefined || vendor === undefined || device === undefined) return [];
    const driver = view.link(`${directory}/driver`);
    const renderNode = view.names(`${directory}/drm`).find((name) => name.startsWith('renderD'));
    const accelNode = view.names(`${directory}/accel`).find((name) => name.startsWith('accel'));
    return [{ kind, address, directory, vendor, device, driver, renderNode, accelNode, name: nameIn(list, vendor, device) }];
  });
}

/** Keeps only lines about these devices and their vendors. https://pci-ids.ucw.cz/ */
export function pickPciIds(list: string, devices: readonly { readonly vendor: number; readonly device: number }[]): string {
  return devices.map(({ vendor, device }) => `${hex(vendor)}  vendor\n\t${hex(device)}  ${nameIn(list, vendor, device) ?? ''}\n`).join('');
}

/** `GA102 [GeForce RTX 3090]` gives `GeForce RTX 3090`. */
function nameIn(list: string, vendor: number, device: number): string | undefined {
  const start = list.search(new RegExp(`^${hex(vendor)}  `, 'm'));
  if (start === -1) return undefined;
  const section = /^.*\n(?:[\t#].*(?:\n|$))*/.exec(list.slice(start))?.[0] ?? '';
  const name = new RegExp(`^\t${hex(device)}  (.+)$`, 'm').exec(section)?.[1]?.trim();
  return name === undefined ? undefined : (/\[([^\]]+)\]$/.exec(name)?.[1] ?? name);
}

const hex = (id: number): string => id.toString(16).padStart(4, '0');

/** Converts `00000000:0A:00.0` of NVIDIA tools to `0000:0a:00.0` of sysfs. */
export function sysfsAddress(text: string): string | undefined {
  const [, domain, rest] = /^([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(text.trim()) ?? [];
  const number = parseNumber(domain === undefined ? undefined : `0x${domain}`);
  return number === undefined || rest === undefined ? undefined : `${number.toString(16).padStart(4, '0')}:${rest.toLowerCase()}`;
}

/** A GPU or NPU before it gets its id. */
export type Detected = Omit<Device, 'id'>;

/** Why a backend cannot be used; undefined if it can. */
type Judged = Readonly<Partial<Record<Backend, string | undefined>>>;

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
  const { name, driver, renderNode, address: pciAddress } = pci;
  return { vendor, pciAddress, ...defined({ name, driver, path: renderNode && `/dev/dri/${renderNode}` }) };
}

/** Undefined if the driver is one of `wanted`. */
export function wrongDriver(kind: 'GPU' | 'NPU', driver: string | undefined, wanted: readonly string[]): string | undefined {
  if (driver !== undefined && wanted.includes(driver)) return undefined;
  const names = wanted.map((name) => `"${name}"`).join(' or ');
  return driver === undefined
    ? `no driver is loaded for the ${kind}; it needs ${names}`
    : `the ${kind} uses the driver "${driver}" instead of ${names}`;
}

/** Memory of a unified device; `limitBytes` is its share of host memory. */
export function sharedMemory(host: MemoryAmount | undefined, limitBytes = Number.POSITIVE_INFINITY): Device['memory'] {
  if (host === undefined) return undefined;
  return { totalBytes: Math.min(host.totalBytes, limitBytes), freeBytes: Math.min(host.availableBytes, limitBytes) };
}
