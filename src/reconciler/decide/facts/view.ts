/** One slot with everything a check may look at, gathered from the facts: lookups and sums, and no decisions. Pure. */
import type { SlotName, WorkloadId } from '../../../schema/names.ts';
import type { Capability } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { DesiredSlot, ImageReference, ModelPresence, ObservedWorkload, RuntimeTraits } from '../../ports.ts';
import type { Action } from './actions.ts';
import type { Comparison } from '../rules/drift.ts';
import type { WorkloadHistory, Attempt, Desired, Observed, RunningAction } from './facts.ts';
import type { Template } from './workload.ts';

export interface WorkloadView {
  readonly fact: ObservedWorkload;
  readonly known: WorkloadHistory;
  readonly inFlight: number;
  /** It had a request. */
  readonly used: boolean;
  /** Created or running, and nobody is ending it. */
  readonly alive: boolean;
  /** A stop of it is under way. */
  readonly stopUnderWay: boolean;
  readonly probeUnderWay: boolean;
  readonly crashNoteUnderWay: boolean;
  /** Against what is wanted now. Without a template nothing can be told apart, and all are current. */
  readonly standing: 'current' | 'outdated' | 'altered';
  readonly drift: readonly string[];
  /** Applying it again inPlace it: an altered one is still the current one. */
  readonly updatable: boolean;
  /** An edit asks for something that is changed in place. */
  readonly behind: boolean;
}

export interface SlotView {
  readonly slot: DesiredSlot;
  readonly spec: SlotSpec;
  readonly now: number;
  readonly network: RuntimeTraits['network'];
  /** Whether this controller carries out what is planned. */
  readonly leads: boolean;
  readonly providerKnown: boolean;
  readonly model: ModelPresence | undefined;
  readonly imagesUsed: boolean;
  readonly image: ImageReference | undefined;
  readonly imagePresent: boolean;
  readonly template: Template | undefined;
  readonly workloads: readonly WorkloadView[];
  readonly inFlight: number;
  readonly waiting: number;
  readonly lastActiveAt: number | undefined;
  /** Of this generation, oldest first. */
  readonly failures: readonly Attempt[];
  /** The action under way that creates or inPlace a workload of it. */
  readonly applying: Extract<Action, { name: 'apply' }> | undefined;
  readonly stopping: boolean;
  /** All pulls under way, by key. */
  readonly pulls: ReadonlyMap<string, RunningAction> | undefined;
  /** The workload that served and the capabilities of the slot, as of the last pass. */
  readonly lastServing: WorkloadId | undefined;
  readonly lastCapabilities: readonly Capability[] | undefined;
}

/** What is true of all slots in one pass, gathered once. */
export interface Gathered {
  readonly workloads: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
  /** Reference → the id it stands for, of images that are there. */
  readonly images: ReadonlyMap<string, string | undefined>;
  readonly underWay: UnderWay;
}

/** What is under way, by what it is done to. */
interface UnderWay {
  readonly applies: ReadonlyMap<SlotName, Extract<Action, { name: 'apply' }>>;
  readonly stops: ReadonlySet<WorkloadId>;
  readonly probes: ReadonlySet<WorkloadId>;
  readonly crashNotes: ReadonlySet<WorkloadId>;
  readonly pulls: ReadonlyMap<string, RunningAction> | undefined;
  /** Slots with a stop. */
  readonly stopping: ReadonlySet<SlotName>;
}

export function gather(observed: Observed): Gathered {
  const workloads = new Map<SlotName, ObservedWorkload[]>();
  const images = new Map<string, string | undefined>();
  if (observed.runtime.kind === 'reachable') {
    for (const workload of observed.runtime.facts.workloads) {
      const list = workloads.get(workload.slot);
      if (list === undefined) workloads.set(workload.slot, [workload]);
      else list.push(workload);
    }
    for (const image of observed.runtime.facts.images) if (image.present) images.set(image.reference, image.imageId);
  }
  return { workloads, images, underWay: gatherUnderWay(observed) };
}

function gatherUnderWay({ running }: Observed): UnderWay {
  const applies = new Map<SlotName, Extract<Action, { name: 'apply' }>>();
  const stops = new Set<WorkloadId>();
  const probes = new Set<WorkloadId>();
  const crashNotes = new Set<WorkloadId>();
  const pulls = new Map<string, RunningAction>();
  const stopping = new Set<SlotName>();
  for (const [key, each] of running) {
    const { action } = each;
    if (action.name === 'pullImage' || action.name === 'pullModel') pulls.set(key, each);
    if (action.name === 'noteCrash') crashNotes.add(action.args.workload);
    if (action.name === 'apply') applies.set(action.args.workload.slot, action);
    if (action.name === 'probe') probes.add(action.args.workload);
    if (action.name !== 'stop') continue;
    stops.add(action.args.workload);
    stopping.add(action.args.slot);
  }
  return { applies, stops, probes, crashNotes, pulls: pulls.size === 0 ? undefined : pulls, stopping };
}

export function viewSlot(slot: DesiredSlot, desired: Desired, observed: Observed, gathered: Gathered, now: number): SlotView {
  const { spec } = slot;
  const model = observed.models.get(spec.model.default);
  const image = observed.traits.images ? desired.images(spec.provider, spec.backend) : undefined;
  const imageUsable = image !== undefined || !observed.traits.images;
  const template = model?.kind === 'present' && imageUsable ? desired.templateOf(slot, model.facts, image) : undefined;
  const imageId = image === undefined ? undefined : (gathered.images.get(image.reference) ?? image.imageId);
  const workloads = (gathered.workloads.get(slot.name) ?? []).map((fact) =>
    viewWorkload(fact, { slot, template, imageId, desired, observed, underWay: gathered.underWay, now }),
  );
  const demand = observed.demand.get(slot.name);
  const attempts = observed.attempts.get(slot.name);
  const last = observed.published.get(slot.name)?.decision;
  return {
    slot,
    spec,
    now,
    network: observed.traits.network,
    leads: observed.leads,
    providerKnown: desired.providers[spec.provider] !== undefined,
    model,
    imagesUsed: observed.traits.images,
    image,
    imagePresent: image === undefined ? !observed.traits.images : gathered.images.has(image.reference),
    template,
    workloads,
    inFlight: workloads.reduce((sum, workload) => sum + workload.inFlight, 0),
    waiting: demand?.waiting ?? 0,
    lastActiveAt: observed.lastActive.get(slot.name),
    failures: attempts?.generation === slot.generation ? attempts.failures : [],
    applying: gathered.underWay.applies.get(slot.name),
    stopping: gathered.underWay.stopping.has(slot.name),
    pulls: gathered.underWay.pulls,
    lastServing: last?.serving,
    lastCapabilities: last?.capabilities,
  };
}

export interface WorkloadContext {
  /** Undefined if the slot is no longer desired. */
  readonly slot?: DesiredSlot;
  readonly template?: Template | undefined;
  readonly imageId?: string | undefined;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly underWay: UnderWay;
  readonly now: number;
}

export function viewWorkload(fact: ObservedWorkload, context: WorkloadContext): WorkloadView {
  const { slot, template, imageId, desired, observed, underWay, now } = context;
  const activity = observed.activity.get(fact.id);
  const same = template === undefined || template.revision === fact.revision;
  const comparable = same && fact.phase !== 'exited' && slot !== undefined && template !== undefined;
  const { drift, outdated, updatable } = comparable ? desired.compare(slot, template, imageId, fact) : NO_DIFFERENCE;
  const stopUnderWay = fact.phase === 'stopping' || underWay.stops.has(fact.id);
  return {
    fact,
    known: observed.histories.get(fact.id) ?? stranger(now),
    inFlight: activity?.inFlight ?? 0,
    used: activity?.lastUsedAt !== undefined,
    alive: (fact.phase === 'created' || fact.phase === 'running') && !stopUnderWay,
    stopUnderWay,
    probeUnderWay: underWay.probes.has(fact.id),
    crashNoteUnderWay: underWay.crashNotes.has(fact.id),
    standing: !same ? 'outdated' : drift.length > 0 ? 'altered' : 'current',
    drift,
    updatable,
    behind: outdated,
  };
}

const NO_DIFFERENCE: Comparison = { drift: [], outdated: false, updatable: false };

function stranger(now: number): WorkloadHistory {
  return {
    seenAt: now,
    startCountsFrom: now,
    probe: undefined,
    drainingSince: undefined,
    origin: undefined,
    stops: undefined,
    updates: undefined,
    notedExit: undefined,
  };
}
