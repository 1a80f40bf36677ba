/**
 * What a slot computes with on this machine. Its provider judges the backends. A spec without a backend gets the first one that the machine can run; a backend that was
 * asked for and is not available is refused. Without facts about devices (in a cluster, where the devices that pods request decide) every backend counts as
 * available. Pure.
 */
import type { BackendVerdict, Provider, ProviderRegistry } from '../../../providers/provider.ts';
import type { Finding } from '../../../schema/failure.ts';
import type { Hardware } from '../../../schema/hardware.ts';
import { PROVIDER_KINDS, type Backend } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { DesiredSlot } from '../../ports.ts';

/** The same slots, each with its backend; the same object for each slot whose backend stays as it is. Asks each provider once. */
export function withBackends<Name>(
  slots: ReadonlyMap<Name, DesiredSlot>,
  providers: ProviderRegistry,
  hardware: Hardware | undefined,
): ReadonlyMap<Name, DesiredSlot> {
  if (hardware === undefined) return slots;
  const best = new Map(Object.values(providers).map((provider) => [provider.kind, bestBackend(provider, hardware)]));
  return new Map(slots.entries().map(([name, slot]) => [name, withBackend(slot, best.get(slot.spec.provider))]));
}

function withBackend(slot: DesiredSlot, best: Backend | undefined): DesiredSlot {
  const { spec } = slot;
  return best === undefined || best === spec.backend || spec.backendGiven ? slot : { ...slot, spec: { ...spec, backend: best } };
}

/** Undefined if the machine can run none of them, or if the provider fails: it fails again when the slots that use it are planned, which then say so. */
function bestBackend(provider: Provider, hardware: Hardware): Backend | undefined {
  try {
    return provider.rankBackends(hardware).find(isUsable)?.backend;
  } catch {
    return undefined;
  }
}

function isUsable({ missing }: BackendVerdict): boolean {
  return missing === undefined;
}

/** Why the backend of a spec cannot be used; undefined where it can, or where that is not known. */
export function backendMissing({ backend }: SlotSpec, provider: Provider | undefined, hardware: Hardware | undefined): Finding | undefined {
  const verdicts = judgedBy(provider, hardware);
  const why = whyMissing(backend, verdicts);
  if (why === undefined) return undefined;
  const usable = verdicts.filter(isUsable).map((verdict) => `"${verdict.backend}"`);
  const advice = usable.length === 0 ? 'Make the device available' : `Set "backend" to ${usable.join(' or ')}`;
  return { reason: 'DeviceMissing', message: `${advice}: "${backend}" is not available here, because ${why}` };
}

/**
 * Why a slot without a backend does not get the default one of its provider; undefined where it does, or where the slot names its backend. A statement about
 * the machine, which nobody has to act on.
 */
export function backendChoice(
  { provider: kind, backend, backendGiven }: SlotSpec,
  provider: Provider | undefined,
  hardware: Hardware | undefined,
): string | undefined {
  const { defaultBackend } = PROVIDER_KINDS[kind];
  const why = backendGiven || backend === defaultBackend ? undefined : whyMissing(defaultBackend, judgedBy(provider, hardware));
  return why === undefined ? undefined : `It computes with "${backend}", as the default "${defaultBackend}" is not available here: ${why}`;
}

function judgedBy(provider: Provider | undefined, hardware: Hardware | undefined): readonly BackendVerdict[] {
  return hardware === undefined ? [] : (provider?.rankBackends(hardware) ?? []);
}

function whyMissing(backend: Backend, verdicts: readonly BackendVerdict[]): string | undefined {
  return verdicts.find((verdict) => verdict.backend === backend)?.missing;
}

/** What the server of a slot computes with once it runs. */
export function computesWith({ backend, resources }: SlotSpec): Backend {
  return resources.gpus === 0 ? 'cpu' : backend;
}
