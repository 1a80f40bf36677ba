/**
 * What a slot computes with on this machine. Its provider judges the backends. A spec without a backend gets the first one that the machine can run; a backend that was
 * asked for and is not available is refused. Without facts about devices (in a cluster, where the devices that pods request decide) every backend counts as
 * available. Pure.
 */
import type { BackendVerdict, Provider, ProviderRegistry } from '../../../providers/provider.ts';
import type { Finding } from '../../../schema/failure.ts';
import type { Machine } from '../../../schema/hardware.ts';
import type { Backend } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { DesiredSlot } from '../../ports.ts';

/** The same slots, each with its backend; the same object for each slot whose backend stays as it is. Asks each provider once. */
export function withBackends<Name>(
  slots: ReadonlyMap<Name, DesiredSlot>,
  providers: ProviderRegistry,
  machine: Machine,
): ReadonlyMap<Name, DesiredSlot> {
  if (machine.devices === undefined) return slots;
  const best = new Map(Object.values(providers).map((provider) => [provider.kind, bestBackend(provider, machine)]));
  return new Map(slots.entries().map(([name, slot]) => [name, withBackend(slot, best.get(slot.spec.provider))]));
}

function withBackend(slot: DesiredSlot, best: Backend | undefined): DesiredSlot {
  const { spec } = slot;
  return best === undefined || best === spec.backend || spec.backendGiven ? slot : { ...slot, spec: { ...spec, backend: best } };
}

/** Undefined if the machine can run none of them, or if the provider fails: it fails again when the slots that use it are planned, which then say so. */
function bestBackend(provider: Provider, machine: Machine): Backend | undefined {
  try {
    return provider.rankBackends(machine).find(isUsable)?.backend;
  } catch {
    return undefined;
  }
}

function isUsable({ missing }: BackendVerdict): boolean {
  return missing === undefined;
}

/** Why the backend of a spec cannot be used; undefined where it can, or where that is not known. */
export function backendMissing({ backend }: SlotSpec, provider: Provider | undefined, machine: Machine): Finding | undefined {
  const verdicts = machine.devices === undefined ? [] : (provider?.rankBackends(machine) ?? []);
  const why = verdicts.find((verdict) => verdict.backend === backend)?.missing;
  if (why === undefined) return undefined;
  const usable = verdicts.filter(isUsable).map((verdict) => `"${verdict.backend}"`);
  const advice = usable.length === 0 ? 'Make the device available' : `Set "backend" to ${usable.join(' or ')}`;
  return { reason: 'DeviceMissing', message: `${advice}: "${backend}" is not available here, because ${why}` };
}

/** What the server of a slot computes with once it runs. */
export function computesWith({ backend, resources }: SlotSpec): Backend {
  return resources.gpus === 0 ? 'cpu' : backend;
}
