/** The providers of a service: the built-in ones, and engines as their files declare them at present. */
import { engineProvider } from '../providers/registry.ts';
import type { Provider, ProviderRegistry } from '../providers/provider.ts';
import type { DesiredSlot, DesiredState } from '../reconciler/ports.ts';
import type { Engines } from '../files/engine-directory.ts';
import { isBuiltInKind } from '../schema/slot/provider-kinds.ts';
import type { EngineDefinition } from '../schema/slot/engine-document.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';

export interface LiveRegistry {
  /** Every user looks a provider up when it needs one. */
  readonly providers: ProviderRegistry;
  /** `isWhole`: engines that are not listed are gone. */
  declare(definitions: Iterable<EngineDefinition>, isWhole: boolean): void;
}

export function createRegistry(builtIn: ProviderRegistry): LiveRegistry {
  const providers: Record<string, Provider> = { ...builtIn };
  return {
    providers,
    declare(definitions, isWhole) {
      const names = new Set<string>();
      for (const definition of definitions) {
        const { name } = definition;
        if (Object.hasOwn(builtIn, name)) continue;
        names.add(name);
        if (providers[name]?.engine !== definition) providers[name] = engineProvider(definition);
      }
      if (!isWhole) return;
      for (const name of Object.keys(providers)) if (!names.has(name) && !Object.hasOwn(builtIn, name)) delete providers[name];
    },
  };
}

/** `engine` undefined: nothing declares it. */
export function withEngine(spec: SlotSpec, engine: EngineDefinition | undefined): SlotSpec {
  const [backend = spec.backend] = spec.backendGiven ? [] : (engine?.backends ?? []);
  return engine === undefined ? spec : { ...spec, engine, backend };
}

/** Engines that slots name. */
export const enginesOf = (slots: Iterable<{ readonly spec: SlotSpec }>): ReadonlySet<string> =>
  new Set([...slots].map(({ spec }) => spec.provider).filter((provider) => !isBuiltInKind(provider)));

/** Slots with the definitions of their engines and their problems; an unchanged one is the same object as before. */
export function rememberEngines(): (slots: DesiredState['slots'], engines: Engines) => DesiredState['slots'] {
  const remembered = new WeakMap<DesiredSlot, { readonly engine: unknown; readonly problems: unknown; readonly slot: DesiredSlot }>();
  return (slots, { definitions, problems }) => {
    const complete = (slot: DesiredSlot): DesiredSlot => {
      const { provider } = slot.spec;
      if (isBuiltInKind(provider)) return slot;
      const [engine, own] = [definitions.get(provider), problems.get(provider)];
      const last = remembered.get(slot);
      if (last !== undefined && last.engine === engine && last.problems === own) return last.slot;
      const made = { ...slot, spec: withEngine(slot.spec, engine), problems: [...slot.problems, ...(own ?? [])] };
      remembered.set(slot, { engine, problems: own, slot: made });
      return made;
    };
    return new Map([...slots].map(([name, slot]) => [name, complete(slot)]));
  };
}
