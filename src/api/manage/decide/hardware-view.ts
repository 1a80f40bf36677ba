/** `GET /api/hardware`: what the machine consists of. Pure. */
import type { z } from 'zod';
import type { Device, HostFacts } from '../../../schema/status/hardware.ts';
import type { Immutable } from '../../server/answer.ts';
import type { DeviceEntry, Hardware } from '../../../schema/status/answers.ts';

/** Said where no machine decides what can be computed with. */
const IN_A_CLUSTER = 'the service runs in a cluster, whose nodes "kubectl describe nodes" shows, with the devices that pods may request';

export function viewHardware({ memoryTotalBytes, memoryAvailableBytes, hardware }: HostFacts): Immutable<z.output<typeof Hardware>> {
  const usable = { memory_total_bytes: memoryTotalBytes ?? null, memory_available_bytes: memoryAvailableBytes ?? null };
  if (hardware === undefined)
    return { source: 'none', recording: null, cpu: null, ...usable, devices: [], devices_hidden: IN_A_CLUSTER, programs: [] };
  const { source, cpu, devices, devicesHidden, programs } = hardware;
  return {
    source: source.kind,
    recording: source.kind === 'recording' ? { file: source.file, about: source.about } : null,
    cpu: { model: cpu.model ?? null, architecture: cpu.architecture, threads: cpu.threads, cores: cpu.cores ?? null },
    ...usable,
    devices: devices.map(viewDevice),
    devices_hidden: devicesHidden ?? null,
    programs: Object.entries(programs).map(([provider, { name, backends }]) => ({ provider, name, backends })),
  };
}

function viewDevice(device: Device): Immutable<z.output<typeof DeviceEntry>> {
  const { memory } = device;
  return {
    id: device.id,
    kind: device.kind,
    vendor: device.vendor,
    name: device.name ?? null,
    pci_address: device.pciAddress ?? null,
    driver: device.driver ?? null,
    architecture: device.architecture ?? null,
    path: device.path ?? null,
    backends: device.backends,
    unavailable: Object.entries(device.unavailable ?? {}).map(([backend, reason]) => ({ backend, reason })),
    memory_total_bytes: memory?.totalBytes ?? null,
    memory_free_bytes: memory === undefined || memory.useUnknown === true ? null : memory.freeBytes,
    memory_dedicated_bytes: memory?.dedicatedBytes ?? null,
    unified: device.unified,
  };
}
