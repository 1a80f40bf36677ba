/** Which backends a machine can run, from the names of its devices and from what programs report. Providers whose backends need nothing else rank them with this. Pure. */
import type { DeviceFacts } from '../../schema/device-facts.ts';
import type { Machine } from '../../schema/hardware.ts';
import { PROVIDER_KINDS, type Backend, type ProviderKind } from '../../schema/provider-kinds.ts';
import type { BackendVerdict } from '../provider.ts';

/** The default backend of the kind first, and then the others in their order. */
export function rankBackends(kind: ProviderKind, { devices }: Machine): readonly BackendVerdict[] {
  const { backends, defaultBackend }: { readonly backends: readonly Backend[]; readonly defaultBackend: Backend } = PROVIDER_KINDS[kind];
  const ranked = [defaultBackend, ...backends.filter((backend) => backend !== defaultBackend)];
  return ranked.map((backend) => {
    const missing = devices === undefined ? undefined : whyMissing(kind, backend, devices);
    return missing === undefined ? { backend } : { backend, missing };
  });
}

/** A program that runs on the host itself knows best; for a container, the device files decide. */
function whyMissing(kind: ProviderKind, backend: Backend, devices: DeviceFacts): string | undefined {
  if (backend === 'cpu') return undefined;
  const program = devices.programs[kind];
  if (program === undefined) return MISSING[backend](devices);
  return program.backends.includes(backend) ? undefined : `${program.name} reports no device for it`;
}

/** The driver whose render node only its own libraries can use, which toolbox images for Vulkan do not have. */
const NVIDIA_DRIVER = 'nvidia';

const MISSING: Readonly<Record<Exclude<Backend, 'cpu'>, (devices: DeviceFacts) => string | undefined>> = {
  vulkan: ({ renderDrivers }) => {
    if (renderDrivers.length === 0) return 'this machine has no "/dev/dri/renderD*"';
    return renderDrivers.some((driver) => driver !== NVIDIA_DRIVER) ? undefined : 'the only GPU of this machine is one of NVIDIA';
  },
  rocm: ({ kfd, renderDrivers }) => (kfd && renderDrivers.length > 0 ? undefined : 'this machine has no "/dev/kfd" with a GPU'),
  cuda: ({ nvidia }) => (nvidia ? undefined : 'this machine has no NVIDIA device'),
  npu: ({ accel }) => (accel ? undefined : 'this machine has no "/dev/accel"'),
};
