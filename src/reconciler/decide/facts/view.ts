/** Each slot with everything that a rule may look at, collected from the facts: lookups and sums, no decisions. Pure. */
import type { SlotName, WorkloadId } from '../../../schema/names.ts';
import type { ModelFacts } from '../../../providers/provider.ts';
import { findAliasConflicts } from '../../../schema/alias-conflicts.ts';
import type { Finding } from '../../../schema/failure.ts';
import type { Capability, ProviderKind } from '../../../schema/provider-kinds.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { SlotState } from '../../../schema/slot-status.ts';
import type { DesiredSlot, ImageReference, ModelPresence, ObservedWorkload, RuntimeTraits } from '../../ports.ts';
import { backendChoice, backendMissing, judgeAll, type Judgement } from '../rules/choose-backend.ts';
import { largestDeviceBytes } from './memory-pools.ts';
import type { MeasuredMemory } from '../rules/measured-memory.ts';
import type { Action } from './actions.ts';
import type { Comparison } from './drift.ts';
import type { Attempt, Attempts, Desired, Observed, Repairs, RunningAction, WorkloadHistory } from './facts.ts';
import type { Template } from './workload.ts';

export interface WorkloadView {
  readonly fact: ObservedWorkload;
  readonly known: WorkloadHistory;
  readonly inFlight: number;
  /** When the last bytes of an answer came from it, in monotonic milliseconds; only where its last probe was not answered, as it is of no use otherwise. */
  readonly heardAt: number | undefined;
  /** It has had a request. */
  readonly used: boolean;
  /** Created or running, and not being stopped. */
  readonly alive: boolean;
  readonly stopUnderWay: boolean;
  readonly probeUnderWay: boolean;
  readonly crashNoteUnderWay: boolean;
  /** Compared with what is wanted now. Without a template nothing can be compared, and every workload is current. */
  readonly standing: 'current' | 'outdated' | 'altered';
  readonly drift: readonly string[];
  /** It can be updated in place, so that an altered one remains the current one. */
  readonly updatable: boolean;
  /** An edit asks for something that is updated in place. */
  readonly behind: boolean;
}

export interface SlotView {
  readonly slot: DesiredSlot;
  readonly spec: SlotSpec;
  readonly now: number;
  readonly network: RuntimeTraits['network'];
  /** Whether this controller executes the plan. */
  readonly leads: boolean;
  readonly providerKnown: boolean;
  /** Aliases that another slot claims, too: a sentence for each. */
  readonly aliasConflicts: readonly string[];
  /** Why the backend cannot be used on this machine. */
  readonly backendMissing: Finding | undefined;
  /** Why it computes with another backend than the default one. */
  readonly backendChoice: string | undefined;
  readonly model: ModelPresence | undefined;
  readonly imagesUsed: boolean;
  readonly image: ImageReference | undefined;
  readonly imagePresent: boolean;
  readonly template: Template | undefined;
  /** Why there is no template though everything that it is made from is there: the provider is broken. */
  readonly templateProblem: string | undefined;
  /** What servers of this revision were measured to use; undefined where that is not known. */
  /** Of the discrete devices that the slot may compute with, the total memory of the largest one; undefined where there is none, or where that is not known. */
  readonly largestDeviceBytes: number | undefined;
  readonly measured: MeasuredMemory | undefined;
  readonly workloads: readonly WorkloadView[];
  readonly inFlight: number;
  readonly waiting: number;
  /** Monotonic milliseconds since which the oldest of them waits; undefined where none does. */
  readonly waitingSince: number | undefined;
  readonly lastActiveAt: number | undefined;
  /** Monotonic milliseconds at which a request last asked for the slot, or gave up waiting for it. */
  readonly lastAskedAt: number | undefined;
  /** Of this generation, oldest first. */
  readonly failures: readonly Attempt[];
  /** Of this generation. */
  readonly repairs: Repairs | undefined;
  /** The running action that starts or updates a workload of the slot. */
  readonly applying: Extract<Action, { name: 'apply' }> | undefined;
  readonly stopping: boolean;
  /** All pulls under way, by key; undefined if there are none. */
  readonly pulls: ReadonlyMap<string, RunningAction> | undefined;
  /** The workload that served and the capabilities of the slot, as of the last pass. */
  readonly lastServing: WorkloadId | undefined;
  readonly lastCapabilities: readonly Capability[] | undefined;
  readonly lastServedModel: ModelFacts | undefined;
  /** In the last pass, the slot was being loaded, or its load was given up and no request has asked since. */
  readonly lastUnserved: boolean;
  /** In the last pass, the slot had to leave its memory to others, or has not been asked for since it did. */
  readonly lastGaveWay: boolean;
}

/** All that views are made of: what is true of every slot in one pass is collected once. */
export interface Gathered {
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
  readonly workloads: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
  /** From the reference of an image that is present to the id that it stands for. */
  readonly images: ReadonlyMap<string, string | undefined>;
  readonly underWay: UnderWay;
  readonly aliasConflicts: ReadonlyMap<string, readonly string[]>;
  /** What providers say of their backends on this machine. */
  readonly judged: ReadonlyMap<ProviderKind, Judgement>;
}

/** Running actions, by what they act on. */
interface UnderWay {
  readonly applies: ReadonlyMap<SlotName, Extract<Action, { name: 'apply' }>>;
  readonly stops: ReadonlySet<WorkloadId>;
  readonly probes: ReadonlySet<WorkloadId>;
  readonly crashNotes: ReadonlySet<WorkloadId>;
  readonly pulls: ReadonlyMap<string, RunningAction> | undefined;
  /** Slots with a stop. */
  readonly stopping: ReadonlySet<SlotName>;
}

export function gather(desired: Desired, observed: Observed, now: number): Gathered {
  const { workloads, images } = observed.runtime.kind === 'reachable' ? observed.runtime.facts : { workloads: [], images: [] };
  return {
    desired,
    observed,
    now,
    workloads: Map.groupBy(workloads, ({ slot }) => slot),
    images: new Map(images.filter(({ present }) => present).map(({ reference, imageId }) => [reference, imageId])),
    underWay: gatherUnderWay(observed),
    aliasConflicts: aliasConflictsOf(desired),
    judged: judgeAll(desired.providers, desired.hardware),
  };
}

function aliasConflictsOf({ slots }: Desired): ReadonlyMap<string, readonly string[]> {
  const named = [...slots.values()].map(({ name, spec }) => ({
    name,
    enabled: spec.enabled,
    model: spec.model.default,
    aliases: spec.model.aliases,
  }));
  return findAliasConflicts(named);
}

const NO_CONFLICTS: readonly string[] = [];

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

export function viewSlot(slot: DesiredSlot, gathered: Gathered): SlotView {
  const { desired, observed, now, underWay } = gathered;
  const { spec } = slot;
  const model = observed.models.get(spec.model.default);
  const image = observed.traits.images ? desired.images(spec.provider, spec.backend) : undefined;
  const imageUsable = image !== undefined || !observed.traits.images;
  const template = model?.kind === 'present' && imageUsable ? desired.templateOf(slot, model.facts, image) : undefined;
  const imageId = image === undefined ? undefined : (gathered.images.get(image.reference) ?? image.imageId);
  const wanted = template === undefined ? undefined : { slot, template, imageId };
  const workloads = (gathered.workloads.get(slot.name) ?? []).map((fact) => viewWorkload(fact, wanted, gathered));
  const demand = observed.demand.get(slot.name);
  const attempts = attemptsOf(slot, observed);
  const last = observed.published.get(slot.name)?.decision;
  return {
    slot,
    spec,
    now,
    network: observed.traits.network,
    leads: observed.leads,
    aliasConflicts: gathered.aliasConflicts.get(slot.name) ?? NO_CONFLICTS,
    backendMissing: backendMissing(spec, gathered.judged.get(spec.provider)),
    backendChoice: backendChoice(spec, gathered.judged.get(spec.provider)),
    providerKnown: desired.providers[spec.provider] !== undefined,
    model,
    imagesUsed: observed.traits.images,
    image,
    imagePresent: image === undefined ? !observed.traits.images : gathered.images.has(image.reference),
    template,
    templateProblem: undefined,
    largestDeviceBytes: largestDeviceBytes(desired.hardware, spec.backend),
    measured: measuredOf(slot.name, template, observed),
    workloads,
    inFlight: workloads.reduce((sum, workload) => sum + workload.inFlight, 0),
    waiting: demand?.waiting ?? 0,
    waitingSince: demand === undefined || demand.waiting === 0 ? undefined : (demand.waitingSince ?? demand.lastAskedAt),
    lastActiveAt: observed.lastActive.get(slot.name),
    lastAskedAt: demand?.lastAskedAt,
    failures: attempts?.failures ?? [],
    repairs: attempts?.repairs,
    applying: underWay.applies.get(slot.name),
    stopping: underWay.stopping.has(slot.name),
    pulls: underWay.pulls,
    lastServing: last?.serving,
    lastCapabilities: last?.capabilities,
    lastServedModel: last?.servedModel,
    lastUnserved: last !== undefined && (LOADING.has(last.state) || last.findings.some(({ reason }) => reason === 'NotAskedFor')),
    lastGaveWay: last?.findings.some(({ reason }) => reason === 'InsufficientMemory' || reason === 'GaveWay') === true,
  };
}

function measuredOf(name: SlotName, template: Template | undefined, { measured }: Observed): MeasuredMemory | undefined {
  const known = measured?.get(name);
  return known?.revision === template?.revision ? known : undefined;
}

/** The view of a slot whose provider fails: its workloads cannot be compared, and stay as they are. */
export function viewWithoutTemplate(slot: DesiredSlot, gathered: Gathered, problem: string): SlotView {
  const desired: Desired = { ...gathered.desired, templateOf: () => undefined };
  return { ...viewSlot(slot, { ...gathered, desired, judged: new Map() }), templateProblem: problem };
}

/** Those of earlier generations do not count. */
function attemptsOf({ name, generation }: DesiredSlot, { attempts }: Observed): Attempts | undefined {
  const all = attempts.get(name);
  return all?.generation === generation ? all : undefined;
}

const LOADING: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming']);

/** What a workload is compared with. */
interface Wanted {
  readonly slot: DesiredSlot;
  readonly template: Template;
  /** The id that the wanted image stands for; undefined where it is not known. */
  readonly imageId: string | undefined;
}

export function viewWorkload(
  fact: ObservedWorkload,
  wanted: Wanted | undefined,
  { desired, observed, underWay, now }: Gathered,
): WorkloadView {
  const activity = observed.activity.get(fact.id);
  const same = wanted === undefined || wanted.template.revision === fact.revision;
  const compared = same && fact.phase !== 'exited' ? wanted : undefined;
  const { drift, outdated, updatable } =
    compared === undefined ? NO_DIFFERENCE : desired.compare(compared.slot, compared.template, compared.imageId, fact);
  const stopUnderWay = fact.phase === 'stopping' || underWay.stops.has(fact.id);
  const known = observed.histories.get(fact.id) ?? newHistory(now);
  return {
    fact,
    known,
    inFlight: activity?.inFlight ?? 0,
    heardAt: known.probe?.status === 'silent' ? activity?.lastHeardAt : undefined,
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

function newHistory(now: number): WorkloadHistory {
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
