/** Which backends a machine can run, from its devices and from what programs report. Providers whose backends need nothing else rank them with this. Pure. */
import type { Machine, MachineDevice } from '../../schema/status/hardware.ts';
import { PROVIDER_KINDS, type Backend, type ProviderKind } from '../../schema/slot/provider-kinds.ts';
import type { BackendVerdict } from '../provider.ts';

/** The default backend of the kind first, and then the others in their order. */
export function rankBackends(kind: ProviderKind, hardware: Machine | undefined): readonly BackendVerdict[] {
  const { backends, defaultBackend }: { readonly backends: readonly Backend[]; readonly defaultBackend: Backend } = PROVIDER_KINDS[kind];
  const ranked = [defaultBackend, ...backends.filter((backend) => backend !== defaultBackend)];
  return ranked.map((backend) => {
    const missing = whyMissing(kind, backend, hardware);
    return missing === undefined ? { backend } : { backend, missing };
  });
}

/** A program that runs on the host itself knows best; for a container, the devices decide. A clause; undefined where it is available, or where that is not known. */
function whyMissing(kind: ProviderKind, backend: Backend, hardware: Machine | undefined): string | undefined {
  if (backend === 'cpu' || hardware === undefined) return undefined;
  const program = hardware.programs[kind];
  if (program !== undefined) return program.backends.includes(backend) ? undefined : `${program.name} reports no such device`;
  const { devices, devicesHidden } = hardware;
  if (devicesHidden !== undefined || devices.some(({ backends }) => backends.includes(backend))) return undefined;
  const labels = Map.groupBy(
    devices.filter((device) => device.unavailable?.[backend] !== undefined),
    (device) => device.unavailable?.[backend],
  );
  const reasons = [...labels].map(([why, affected]) => `${why} (${affected.map(labelOf).join(', ')})`);
  return reasons.length === 0 ? NOTHING_FOR[backend] : reasons.join('; ');
}

function labelOf({ id, name }: MachineDevice): string {
  return name === undefined ? id : `${id}: ${name}`;
}

const NOTHING_FOR: Readonly<Record<Exclude<Backend, 'cpu'>, string>> = {
  vulkan: 'this machine has no GPU',
  rocm: 'this machine has no GPU of AMD',
  cuda: 'this machine has no GPU of NVIDIA',
  npu: 'this machine has no NPU',
};
