/**
 * What a slot computes with on this machine. Its provider judges the backends. A spec without a backend gets the first
 * one that the machine can run; a backend that was asked for and is not available is refused. Without facts about
 * devices (in a cluster, where the devices that pods request decide) every backend counts as available. Pure.
 */
import type { BackendVerdict, Provider, ProviderRegistry } from '../../../providers/provider.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { Machine } from '../../../schema/status/hardware.ts';
import { kindFacts, type Backend, type ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { isCalled, largestDeviceBytes, poolsOfBackend } from './memory-pools.ts';
import type { DesiredSlot } from '../../ports.ts';

/** The same slots with their backends; unchanged slots stay the same object. Asks each provider once. */
export function withBackends<Name>(
  slots: ReadonlyMap<Name, DesiredSlot>,
  { providers, give = giveBackend }: { readonly providers: ProviderRegistry; readonly give?: typeof giveBackend },
  hardware: Machine | undefined,
): ReadonlyMap<Name, DesiredSlot> {
  if (hardware === undefined) return slots;
  const best = new Map(Object.values(providers).map((provider) => [provider.kind, bestBackend(provider, hardware)]));
  const withBackend = (slot: DesiredSlot): DesiredSlot => {
    const { spec } = slot;
    const backend = (spec.backendGiven ? undefined : best.get(spec.provider)) ?? spec.backend;
    const { engine } = providers[spec.provider] ?? {};
    const deviceBytes = engine?.memory.fractionFlag === undefined ? undefined : largestDeviceBytes(hardware, backend);
    return backend === spec.backend && deviceBytes === undefined ? slot : give(slot, backend, deviceBytes);
  };
  return new Map(slots.entries().map(([name, slot]) => [name, withBackend(slot)]));
}

export const giveBackend = (slot: DesiredSlot, backend: Backend, deviceBytes?: number): DesiredSlot => ({
  ...slot,
  spec: { ...slot.spec, backend, ...(deviceBytes === undefined ? {} : { deviceBytes }) },
});

/** A provider's verdicts on its backends. A provider that fails holds up only the slots that use it. */
export type Judgement = { readonly verdicts: readonly BackendVerdict[] } | { readonly error: unknown };

export function judge(provider: Provider, hardware: Machine | undefined): Judgement {
  try {
    return { verdicts: hardware === undefined ? [] : provider.rankBackends(hardware) };
  } catch (error) {
    return { error };
  }
}

/** Judges once for all slots. */
export function judgeAll(providers: ProviderRegistry, hardware: Machine | undefined): ReadonlyMap<ProviderKind, Judgement> {
  return new Map(Object.values(providers).map((provider) => [provider.kind, judge(provider, hardware)]));
}

/** Undefined if the machine can run none of them, or if the provider fails. */
function bestBackend(provider: Provider, hardware: Machine): Backend | undefined {
  const judged = judge(provider, hardware);
  return 'error' in judged ? undefined : judged.verdicts.find(isUsable)?.backend;
}

const isUsable = ({ missing }: BackendVerdict): boolean => missing === undefined;

/** Why the spec's backend cannot be used; undefined if it can, or if unknown. Throws if the provider failed. */
export function backendMissing({ backend }: SlotSpec, judged: Judgement | undefined): Finding | undefined {
  const verdicts = verdictsOf(judged);
  const why = whyMissing(backend, verdicts);
  if (why === undefined) return undefined;
  const usable = verdicts.filter(isUsable).map((verdict) => `"${verdict.backend}"`);
  const advice = usable.length === 0 ? 'make the device available' : `set "backend" to ${usable.join(' or ')}`;
  return { reason: 'DeviceMissing', message: `Backend "${backend}" is not available here, because ${why}; ${advice}` };
}

/** Why a slot cannot have the devices that it names; undefined if it can. `isHost`: servers run on this machine. */
export function devicesMissing(spec: SlotSpec, machine: Machine | undefined, isHost: boolean): Finding | undefined {
  const { backend, resources } = spec;
  const { devices } = resources;
  if (devices === undefined) return undefined;
  const missing = (message: string): Finding => ({ reason: 'DeviceMissing', message });
  if (!isHost)
    return missing('A cluster chooses the devices of pods, so "resources.devices" has no effect; remove it, or use "nodeSelector"');
  const { own } = poolsOfBackend(machine, backend);
  const usable = (machine?.devices ?? []).filter(({ id }) => own.includes(id));
  const unknown = devices.find((name) => !usable.some((device) => isCalled(device, name)));
  if (unknown === undefined) return undefined;
  const fix = own.length === 0 ? 'remove "resources.devices"' : `use ${own.map((id) => `"${id}"`).join(' or ')}`;
  return missing(`"${unknown}" of "resources.devices" is no GPU with memory of its own that backend "${backend}" can use here; ${fix}`);
}

/** Why a slot that names no backend does not get the default one of its provider; undefined where it does. */
export function backendChoice({ provider, engine, backend, backendGiven }: SlotSpec, judged: Judgement | undefined): string | undefined {
  const { defaultBackend } = kindFacts(provider);
  const [first = defaultBackend] = engine?.backends ?? [];
  const why = backendGiven || backend === first ? undefined : whyMissing(first, verdictsOf(judged));
  return why === undefined ? undefined : `"${backend}", as the default "${first}" is not available here: ${why}`;
}

function verdictsOf(judged: Judgement | undefined): readonly BackendVerdict[] {
  if (judged === undefined) return [];
  if ('error' in judged) throw judged.error;
  return judged.verdicts;
}

function whyMissing(backend: Backend, verdicts: readonly BackendVerdict[]): string | undefined {
  return verdicts.find((verdict) => verdict.backend === backend)?.missing;
}

/** The backend that a slot's server really uses once it runs. */
export const computesWith = ({ backend, resources }: SlotSpec): Backend => (resources.gpus === 0 ? 'cpu' : backend);
