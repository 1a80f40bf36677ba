/** Desired state as a plan needs it: slots with providers, images, ports and memory, and their workloads' templates. */
import type { ProviderRegistry } from '../../providers/provider.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import type { Backend, ProviderKind } from '../../schema/slot/provider-kinds.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { Desired } from '../decide/facts/facts.ts';
import { makeTemplate, type Template } from '../decide/facts/workload.ts';
import { compareWorkload } from '../decide/facts/drift.ts';
import { createMemo } from '../../platform/memo.ts';
import { giveBackend, withBackends } from '../decide/facts/choose-backend.ts';
import type { HostFacts } from '../../schema/status/hardware.ts';
import type { DesiredSlot, DesiredState, ImageReference, ModelStore, ObservedWorkload, PromptStore, Runtime } from '../ports.ts';

export interface DesireDeps {
  readonly runtime: Pick<Runtime, 'traits'>;
  readonly models: Pick<ModelStore, 'root'>;
  /** Default: no prompts are kept. */
  readonly prompts?: Pick<PromptStore, 'root'> | undefined;
  readonly providers: ProviderRegistry;
  /** The image a provider runs in; undefined if none is known. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly settings: Pick<Settings, 'SVC_PORT_RANGE' | 'SVC_MEMORY_BUDGET'> &
    Partial<Pick<Settings, 'SVC_LISTEN' | 'SVC_MANAGEMENT_LISTEN' | 'SVC_WYOMING'>>;
  /** Default: without memory. */
  readonly give?: typeof giveBackend;
}

/** The two functions of a plan that cost the most: they hash, and they compare every field of a workload. */
export type Templating = Pick<Desired, 'templateOf' | 'compare'>;

/** The share of the host's memory that models may use; the rest is for the system and the gateway. */
const SHARE_OF_HOST = 0.9;

export function desire(
  deps: DesireDeps,
  { slots, refused }: DesiredState,
  { memoryTotalBytes, hardware }: HostFacts,
  templating: Templating,
): Desired {
  const { providers, images, settings, models, runtime } = deps;
  // Pods do not run in the memory of this host.
  const ownMemory = runtime.traits.network === 'pods' ? undefined : memoryTotalBytes;
  return {
    slots: withBackends(slots, deps, hardware),
    hardware,
    refused,
    providers,
    images,
    portRange: settings.SVC_PORT_RANGE,
    ownPorts: [settings.SVC_LISTEN, settings.SVC_MANAGEMENT_LISTEN, settings.SVC_WYOMING].flatMap((listen) => listen?.port ?? []),
    modelsRoot: models.root,
    memoryBudgetBytes: budgetOf(settings, ownMemory),
    ...templating,
  };
}

/** The budget for the memory of this machine; undefined where its size is not known. */
export function budgetOf(settings: Pick<Settings, 'SVC_MEMORY_BUDGET'>, memoryTotalBytes: number | undefined): number | undefined {
  return settings.SVC_MEMORY_BUDGET ?? (memoryTotalBytes === undefined ? undefined : Math.floor(memoryTotalBytes * SHARE_OF_HOST));
}

export function templatingOf({
  providers,
  models,
  prompts,
  runtime: { traits },
}: Pick<DesireDeps, 'providers' | 'models' | 'prompts' | 'runtime'>): Templating {
  return {
    templateOf({ name, spec }, model, image, more) {
      const provider = providers[spec.provider];
      const roots = { modelsRoot: models.root, promptsRoot: prompts?.root };
      return provider === undefined ? undefined : makeTemplate({ name, spec, provider, model, image, traits, ...roots, ...more });
    },
    compare: (slot, template, imageId, workload) => compareWorkload({ traits, slot, template, imageId }, workload),
  };
}

/** Returns the same object for a slot while it and its backend are the same, so that later steps need not compare. */
export function rememberBackends(): typeof giveBackend {
  const given = new WeakMap<DesiredSlot, DesiredSlot>();
  return (slot, backend, deviceBytes) => {
    const last = given.get(slot);
    if (last?.spec.backend === backend && last.spec.deviceBytes === deviceBytes) return last;
    const made = giveBackend(slot, backend, deviceBytes);
    given.set(slot, made);
    return made;
  };
}

/** The same, computed once for as long as the inputs are the same: with 2,000 slots, most of what a pass would cost. */
export function rememberTemplating({ templateOf, compare }: Templating): Templating & {
  /** Forgets slots and workloads that are gone. */
  keepOnly(slots: ReadonlyMap<SlotName, unknown>, workloads: readonly ObservedWorkload[]): void;
} {
  const templates = createMemo<SlotName, Parameters<typeof templateOf>, Template | undefined>(templateOf);
  const comparisons = createMemo<WorkloadId, Parameters<typeof compare>, ReturnType<typeof compare>>(compare);
  return {
    templateOf: (slot, model, image, more) => templates.get(slot.name, slot, model, image, more),
    compare: (slot, template, imageId, workload) => comparisons.get(workload.id, slot, template, imageId, workload),
    keepOnly(slots, workloads) {
      templates.keepOnly(slots);
      comparisons.keepOnly(new Set(workloads.map(({ id }) => id)));
    },
  };
}
