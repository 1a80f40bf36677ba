/**
 * What a slot computes with on this machine. A spec without a backend gets the default one of its provider where the machine can run it, else the best that
 * it can; a backend that was asked for and is not available is refused. Without facts about devices (in a cluster, where the devices that pods request
 * decide) every backend counts as available. Pure.
 */
import type { Finding } from '../../../schema/failure.ts';
import { PROVIDER_KINDS, type Backend, type ProviderKind } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { DeviceFacts } from '../../../schema/device-facts.ts';

/** The same object if the backend stays as it is. */
export function withBackend(slot: DesiredSlot, devices: DeviceFacts | undefined): DesiredSlot {
  const { spec } = slot;
  if (devices === undefined || spec.backendGiven) return slot;
  const { backends, defaultBackend }: { readonly backends: readonly Backend[]; readonly defaultBackend: Backend } =
    PROVIDER_KINDS[spec.provider];
  const best = [defaultBackend, ...backends].find((backend) => whyUnavailable(spec.provider, backend, devices) === undefined);
  return best === undefined || best === spec.backend ? slot : { ...slot, spec: { ...spec, backend: best } };
}

/** Why the backend of a spec cannot be used; undefined where it can, or where that is not known. */
export function backendMissing({ provider, backend }: SlotSpec, devices: DeviceFacts | undefined): Finding | undefined {
  const why = devices === undefined ? undefined : whyUnavailable(provider, backend, devices);
  if (devices === undefined || why === undefined) return undefined;
  const offered: readonly Backend[] = PROVIDER_KINDS[provider].backends;
  const usable = offered.filter((other) => whyUnavailable(provider, other, devices) === undefined).map((other) => `"${other}"`);
  const advice = usable.length === 0 ? 'Make the device available' : `Set "backend" to ${usable.join(' or ')}`;
  return { reason: 'DeviceMissing', message: `${advice}: "${backend}" is not available here, because ${why}` };
}

/** What the server of a slot computes with once it runs. */
export function computesWith({ backend, resources }: SlotSpec): Backend {
  return resources.gpus === 0 ? 'cpu' : backend;
}

/** A program that runs on the host itself knows best; for a container, the device files decide. */
function whyUnavailable(provider: ProviderKind, backend: Backend, devices: DeviceFacts): string | undefined {
  if (backend === 'cpu') return undefined;
  const program = devices.programs[provider];
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
