/**
 * What a slot computes with on this machine. A spec without a backend gets the default one of its provider where the machine can run it, else the best that
 * it can; a backend that was asked for and is not available is refused. Without facts about devices (in a cluster, where the devices that pods request
 * decide) every backend counts as available. Pure.
 */
import type { Finding } from '../../../schema/failure.ts';
import type { Device, Hardware } from '../../../schema/hardware.ts';
import { PROVIDER_KINDS, type Backend, type ProviderKind } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { DesiredSlot } from '../../ports.ts';

/** The same object if the backend stays as it is. */
export function withBackend(slot: DesiredSlot, hardware: Hardware | undefined): DesiredSlot {
  const { spec } = slot;
  const best = spec.backendGiven ? undefined : bestBackend(spec.provider, hardware);
  return best === undefined || best === spec.backend ? slot : { ...slot, spec: { ...spec, backend: best } };
}

/** Undefined where the machine can run none of the provider's backends. */
function bestBackend(provider: ProviderKind, hardware: Hardware | undefined): Backend | undefined {
  const { backends, defaultBackend }: OfferedBackends = PROVIDER_KINDS[provider];
  return [defaultBackend, ...backends].find((backend) => whyUnavailable(provider, backend, hardware) === undefined);
}

interface OfferedBackends {
  /** The better ones first. */
  readonly backends: readonly Backend[];
  readonly defaultBackend: Backend;
}

/** Why the backend of a spec cannot be used; undefined where it can, or where that is not known. */
export function backendMissing({ provider, backend }: SlotSpec, hardware: Hardware | undefined): Finding | undefined {
  const why = whyUnavailable(provider, backend, hardware);
  if (why === undefined) return undefined;
  const { backends }: OfferedBackends = PROVIDER_KINDS[provider];
  const usable = backends.filter((other) => whyUnavailable(provider, other, hardware) === undefined).map((other) => `"${other}"`);
  const advice = usable.length === 0 ? 'Make the device available' : `Set "backend" to ${usable.join(' or ')}`;
  return { reason: 'DeviceMissing', message: `${advice}: "${backend}" is not available here, because ${why}` };
}

/**
 * Why a slot without a backend does not get the default one of its provider; undefined where it does, or where the slot names its backend. A statement about
 * the machine, which nobody has to act on.
 */
export function backendChoice({ provider, backend, backendGiven }: SlotSpec, hardware: Hardware | undefined): string | undefined {
  const { defaultBackend }: OfferedBackends = PROVIDER_KINDS[provider];
  const why = backendGiven || backend === defaultBackend ? undefined : whyUnavailable(provider, defaultBackend, hardware);
  return why === undefined ? undefined : `It computes with "${backend}", as the default "${defaultBackend}" is not available here: ${why}`;
}

/** What the server of a slot computes with once it runs. */
export function computesWith({ backend, resources }: SlotSpec): Backend {
  return resources.gpus === 0 ? 'cpu' : backend;
}

/** A program that runs on the host itself knows best; for a container, the devices decide. A clause; undefined where it is available, or where that is not known. */
function whyUnavailable(provider: ProviderKind, backend: Backend, hardware: Hardware | undefined): string | undefined {
  if (backend === 'cpu' || hardware === undefined) return undefined;
  const program = hardware.programs[provider];
  if (program !== undefined) return program.backends.includes(backend) ? undefined : `${program.name} reports no device for it`;
  const { devices, devicesHidden } = hardware;
  if (devicesHidden !== undefined || devices.some(({ backends }) => backends.includes(backend))) return undefined;
  const labels = Map.groupBy(
    devices.filter((device) => device.unavailable?.[backend] !== undefined),
    (device) => device.unavailable?.[backend],
  );
  const reasons = [...labels].map(([why, affected]) => `${why} (${affected.map(labelOf).join(', ')})`);
  return reasons.length === 0 ? NOTHING_FOR[backend] : reasons.join('; ');
}

function labelOf({ id, name }: Device): string {
  return name === undefined ? id : `${id}: ${name}`;
}

const NOTHING_FOR: Readonly<Record<Exclude<Backend, 'cpu'>, string>> = {
  vulkan: 'this machine has no GPU',
  rocm: 'this machine has no GPU of AMD',
  cuda: 'this machine has no GPU of NVIDIA',
  npu: 'this machine has no NPU',
};
