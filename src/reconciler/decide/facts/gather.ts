/** Collects the facts about all slots of one pass: lookups only. Pure. */
import type { SlotName } from '../../../schema/words/names.ts';
import type { Machine, DeviceMemory, Hardware, MachineDevice } from '../../../schema/status/hardware.ts';
import { findFallbackProblems } from '../../../schema/slot/fallback.ts';
import { findAliasConflicts } from '../../../schema/slot/slot-rules.ts';
import { servesOf } from '../../../schema/slot/provider-kinds.ts';
import type { ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { ProgramOptions, Provider } from '../../../providers/provider.ts';
import type { ImageReference, ObservedWorkload, RuntimeTraits } from '../../ports.ts';
import { judgeAll, type Judgement } from './choose-backend.ts';
import { isPull } from './actions.ts';
import type { Desired, Observed, RunningAction } from './facts.ts';

/** Facts that are the same for every slot and in nearly every pass. */
export interface Circumstances extends Pick<Desired, 'providers' | 'templateOf' | 'compare'>, Pick<Observed, 'traits' | 'leads'> {
  readonly machine: Machine | undefined;
}

/** Facts that slots share, in tables. As long as nothing in it changes, the loop uses the same object in each pass. */
export interface SharedFacts {
  readonly circumstances: Circumstances;
  readonly models: Observed['models'];
  /** The image of each provider and each build that slots name (`buildKey`), and whether it is present. */
  readonly images: ReadonlyMap<ProviderKind, ReadonlyMap<string, ImageFacts>>;
  readonly aliasConflicts: ReadonlyMap<string, readonly string[]>;
  readonly fallbackProblems: ReadonlyMap<SlotName, readonly string[]>;
  /** Verdicts of the providers on their backends on this machine. */
  readonly judged: ReadonlyMap<ProviderKind, Judgement>;
  /** The pulls under way, by key. */
  readonly pulls: ReadonlyMap<string, RunningAction>;
}

/** Facts about all slots of one pass, collected once. */
export interface Gathered {
  readonly shared: SharedFacts;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
  readonly workloads: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
  /** Slots of which a workload is being stopped. */
  readonly stopping: ReadonlySet<SlotName>;
  /** Slots with any action under way. */
  readonly busy: ReadonlySet<SlotName>;
}

export interface ImageFacts {
  readonly image: ImageReference | undefined;
  readonly present: boolean;
  readonly imageId: string | undefined;
  readonly options: ProgramOptions | 'asking' | undefined;
}

export const needsImage = ({ images }: RuntimeTraits, provider: Provider | undefined): boolean =>
  images && provider?.runsElsewhere !== true;

export function gather(desired: Desired, observed: Observed, now: number): Gathered {
  const { providers, hardware, templateOf, compare } = desired;
  const { traits, leads } = observed;
  const machine = machineOf(hardware);
  const { workloads } = observed.runtime.kind === 'reachable' ? observed.runtime.facts : { workloads: [] };
  const running = [...observed.running];
  const named = [...desired.slots.values()].map(({ name, spec: { enabled, model } }) => ({
    name,
    enabled,
    model: model.default,
    aliases: model.aliases,
    presets: model.presets,
  }));
  const falling = [...desired.slots.values()].map(({ name, spec }) => ({ name, fallback: spec.fallback, capabilities: servesOf(spec) }));
  return {
    shared: {
      circumstances: { providers, machine, templateOf, compare, traits, leads },
      models: observed.models,
      images: gatherImages(desired, observed),
      aliasConflicts: findAliasConflicts(named),
      fallbackProblems: findFallbackProblems(falling),
      judged: judgeAll(providers, machine),
      pulls: new Map(running.filter(([, { action }]) => isPull(action))),
    },
    desired,
    observed,
    now,
    workloads: Map.groupBy(workloads, ({ slot }) => slot),
    stopping: new Set(running.flatMap(([, { action }]) => (action.name === 'stop' ? [action.args.slot] : []))),
    busy: new Set(running.map(([, { action }]) => action.slot)),
  };
}

/** The image of a slot: its own, or that of its provider and backend. */
export const imageOf = (
  { provider, backend, program }: Pick<SlotSpec, 'provider' | 'backend' | 'program'>,
  images: Desired['images'],
): ImageReference | undefined => (program?.image === undefined ? images(provider, backend) : { reference: program.image });

/** The same for slots of a provider that run the same build. */
export const buildKey = ({ backend, program }: Pick<SlotSpec, 'backend' | 'program'>): string =>
  program === undefined ? backend : [backend, program.image, program.path].join('\n');

/** Asks once for each provider and build, and not for each slot. */
function gatherImages({ slots, images }: Desired, { traits, runtime }: Observed): SharedFacts['images'] {
  const seen = runtime.kind === 'reachable' ? runtime.facts.images : [];
  const present = new Map(seen.filter((fact) => fact.present).map(({ reference, imageId }) => [reference, imageId]));
  const found = new Map<ProviderKind, Map<string, ImageFacts>>();
  for (const { spec } of slots.values()) {
    let ofProvider = found.get(spec.provider);
    if (ofProvider === undefined) found.set(spec.provider, (ofProvider = new Map<string, ImageFacts>()));
    const key = buildKey(spec);
    if (ofProvider.has(key)) continue;
    const image = traits.images ? imageOf(spec, images) : undefined;
    ofProvider.set(key, {
      image,
      present: image === undefined ? !traits.images : present.has(image.reference),
      imageId: image === undefined ? undefined : (present.get(image.reference) ?? image.imageId),
      options: optionsOf(spec, image, runtime),
    });
  }
  return found;
}

/** The flags of the program that would run. */
export const optionsOf = (
  { provider, program }: Pick<SlotSpec, 'provider' | 'program'>,
  image: ImageReference | undefined,
  runtime: Observed['runtime'],
): ImageFacts['options'] =>
  runtime.kind === 'reachable' ? runtime.facts.options?.get(image?.reference ?? program?.path ?? provider) : undefined;

export const knownOptions = (options: ImageFacts['options']): ProgramOptions | undefined => (options === 'asking' ? undefined : options);

/** The hardware without free memory, so that another program's allocation causes no new plan. */
function machineOf(hardware: Hardware | undefined): Machine | undefined {
  if (hardware === undefined) return undefined;
  const { memory, devices, ...machine } = hardware;
  return {
    ...machine,
    memory: memory === undefined ? undefined : { totalBytes: memory.totalBytes },
    devices: devices.map((device) => ({ ...device, memory: device.memory && withoutUse(device.memory) })),
  };
}

const withoutUse = ({ freeBytes: _free, dedicatedFreeBytes: _dedicatedFree, ...fixed }: DeviceMemory): MachineDevice['memory'] => fixed;
