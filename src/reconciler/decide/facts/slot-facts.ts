/**
 * The facts of one slot, looked up in the facts of a pass. A view is made of `SlotFacts` and the time, and of nothing
 * else, so that a slot whose facts are the same objects as in an earlier pass needs no new view. Pure.
 */
import type { ModelFacts } from '../../../providers/provider.ts';
import type { WorkloadId } from '../../../schema/words/names.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import type { SlotState } from '../../../schema/status/slot-status.ts';
import type { Demand, DesiredSlot, ImageReference, ModelPresence, ObservedWorkload } from '../../ports.ts';
import type { Judgement } from './choose-backend.ts';
import type { MeasuredMemory } from './measured-memory.ts';
import { pullImageKey, pullModelKey } from './actions.ts';
import type { Attempts, Decision, RunningAction, WorkloadHistory } from './facts.ts';
import type { Apply, Circumstances, Gathered, ImageFacts, SharedFacts } from './gather.ts';

/** Facts about one workload in a view. */
export interface WorkloadFacts {
  readonly fact: ObservedWorkload;
  readonly known: WorkloadHistory;
  readonly inFlight: number;
  /** When bytes of an answer last arrived, in monotonic milliseconds; set only if the last probe got no answer. */
  readonly heardAt: number | undefined;
  /** It has had a request. */
  readonly used: boolean;
  readonly stopUnderWay: boolean;
  readonly probeUnderWay: boolean;
  readonly crashNoteUnderWay: boolean;
}

/** Inputs of a slot's view except the time. Equal field by field and workload by workload means an equal view. */
export interface SlotFacts {
  readonly circumstances: Circumstances;
  readonly slot: DesiredSlot;
  readonly judged: Judgement | undefined;
  readonly aliasConflicts: readonly string[];
  readonly model: ModelPresence | undefined;
  readonly image: ImageReference | undefined;
  readonly imagePresent: boolean;
  /** The id that the wanted image stands for; undefined where it is not known. */
  readonly imageId: string | undefined;
  /** Peak measured memory of the slot's servers, over all revisions. */
  readonly measured: MeasuredMemory | undefined;
  readonly workloads: readonly WorkloadFacts[];
  readonly waiting: number;
  /** Monotonic milliseconds; undefined where it is not known since when the oldest request waits. */
  readonly waitingSince: number | undefined;
  readonly lastAskedAt: number | undefined;
  readonly lastActiveAt: number | undefined;
  /** Attempts of every generation. */
  readonly attempts: Attempts | undefined;
  readonly applying: Apply | undefined;
  readonly stopping: boolean;
  /** The pulls under way of its image and of its model. */
  readonly imagePull: RunningAction | undefined;
  readonly modelPull: RunningAction | undefined;
  /** The last publication: serving workload, capabilities and served model. */
  readonly lastServing: WorkloadId | undefined;
  readonly lastCapabilities: readonly Capability[] | undefined;
  readonly lastServedModel: ModelFacts | undefined;
  /** In the last pass, the slot was being loaded, or its load was given up and no request has asked since. */
  readonly lastUnserved: boolean;
  /** In the last pass, the slot had to leave its memory to others, or has not been asked for since it did. */
  readonly lastGaveWay: boolean;
}

/** Sources of a slot's facts, except its workloads. Identical sources mean identical facts. */
export interface SlotSources {
  readonly shared: SharedFacts;
  readonly slot: DesiredSlot;
  readonly measured: MeasuredMemory | undefined;
  readonly demand: Demand | undefined;
  readonly lastActiveAt: number | undefined;
  readonly attempts: Attempts | undefined;
  readonly applying: Apply | undefined;
  readonly stopping: boolean;
  /** The last publication. */
  readonly last: Decision | undefined;
}

export function sourcesOf(slot: DesiredSlot, { shared, observed, underWay }: Gathered): SlotSources {
  const { name } = slot;
  return {
    shared,
    slot,
    measured: observed.measured?.get(name),
    demand: observed.demand.get(name),
    lastActiveAt: observed.lastActive.get(name),
    attempts: observed.attempts.get(name),
    applying: underWay.applies.get(name),
    stopping: underWay.stopping.has(name),
    last: observed.published.get(name)?.decision,
  };
}

/** Source of each fact of a slot. Construction and comparison both read this table, so no fact can be forgotten. */
const READ: { readonly [Key in keyof Omit<SlotFacts, 'workloads'>]: (sources: SlotSources) => SlotFacts[Key] } = {
  circumstances: ({ shared }) => shared.circumstances,
  slot: ({ slot }) => slot,
  judged: ({ slot, shared }) => shared.judged.get(slot.spec.provider),
  aliasConflicts: ({ slot, shared }) => shared.aliasConflicts.get(slot.name) ?? NO_CONFLICTS,
  model: ({ slot, shared }) => shared.models.get(slot.spec.model.default),
  image: (sources) => imageOf(sources)?.image,
  imagePresent: (sources) => imageOf(sources)?.present === true,
  imageId: (sources) => imageOf(sources)?.imageId,
  measured: ({ measured }) => measured,
  waiting: ({ demand }) => demand?.waiting ?? 0,
  waitingSince({ demand }) {
    return demand === undefined || demand.waiting === 0 ? undefined : (demand.waitingSince ?? demand.lastAskedAt);
  },
  lastAskedAt: ({ demand }) => demand?.lastAskedAt,
  lastActiveAt: ({ lastActiveAt }) => lastActiveAt,
  attempts: ({ attempts }) => attempts,
  applying: ({ applying }) => applying,
  stopping: ({ stopping }) => stopping,
  imagePull(sources) {
    const { pulls } = sources.shared;
    const image = pulls.size === 0 ? undefined : imageOf(sources)?.image;
    return image === undefined ? undefined : pulls.get(pullImageKey(image));
  },
  modelPull({ slot, shared }) {
    return shared.pulls.size === 0 ? undefined : shared.pulls.get(pullModelKey(slot.spec.model.default));
  },
  lastServing: ({ last }) => last?.serving,
  lastCapabilities: ({ last }) => last?.capabilities,
  lastServedModel: ({ last }) => last?.servedModel,
  // Only the parts that a view needs: another place in the memory order is no other slot.
  lastUnserved: ({ last }) =>
    last !== undefined && (LOADING.has(last.state) || last.findings.some(({ reason }) => reason === 'NotAskedFor')),
  lastGaveWay: ({ last }) => last?.findings.some(({ reason }) => reason === 'InsufficientMemory' || reason === 'GaveWay') === true,
};

/** The same for a workload. */
const READ_WORKLOAD: {
  readonly [Key in keyof Omit<WorkloadFacts, 'known'>]: (from: ObservedWorkload, gathered: Gathered) => WorkloadFacts[Key];
} = {
  fact: (fact) => fact,
  inFlight: ({ id }, { observed }) => observed.activity.get(id)?.inFlight ?? 0,
  heardAt({ id }, { observed }) {
    return observed.histories.get(id)?.probe?.status === 'silent' ? observed.activity.get(id)?.lastHeardAt : undefined;
  },
  used: ({ id }, { observed }) => observed.activity.get(id)?.lastUsedAt !== undefined,
  stopUnderWay: ({ id, phase }, { underWay }) => phase === 'stopping' || underWay.stops.has(id),
  probeUnderWay: ({ id }, { underWay }) => underWay.probes.has(id),
  crashNoteUnderWay: ({ id }, { underWay }) => underWay.crashNotes.has(id),
};

const NO_CONFLICTS: readonly string[] = [];
const LOADING: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming']);

function imageOf({ slot: { spec }, shared }: SlotSources): ImageFacts | undefined {
  return shared.images.get(spec.provider)?.get(spec.backend);
}

export function slotFactsOf(slot: DesiredSlot, gathered: Gathered): SlotFacts {
  const sources = sourcesOf(slot, gathered);
  return {
    circumstances: READ.circumstances(sources),
    slot: READ.slot(sources),
    judged: READ.judged(sources),
    aliasConflicts: READ.aliasConflicts(sources),
    model: READ.model(sources),
    image: READ.image(sources),
    imagePresent: READ.imagePresent(sources),
    imageId: READ.imageId(sources),
    measured: READ.measured(sources),
    workloads: (gathered.workloads.get(slot.name) ?? []).map((fact) => workloadFactsOf(fact, gathered)),
    waiting: READ.waiting(sources),
    waitingSince: READ.waitingSince(sources),
    lastAskedAt: READ.lastAskedAt(sources),
    lastActiveAt: READ.lastActiveAt(sources),
    attempts: READ.attempts(sources),
    applying: READ.applying(sources),
    stopping: READ.stopping(sources),
    imagePull: READ.imagePull(sources),
    modelPull: READ.modelPull(sources),
    lastServing: READ.lastServing(sources),
    lastCapabilities: READ.lastCapabilities(sources),
    lastServedModel: READ.lastServedModel(sources),
    lastUnserved: READ.lastUnserved(sources),
    lastGaveWay: READ.lastGaveWay(sources),
  };
}

export function workloadFactsOf(fact: ObservedWorkload, gathered: Gathered): WorkloadFacts {
  return {
    fact: READ_WORKLOAD.fact(fact, gathered),
    known: gathered.observed.histories.get(fact.id) ?? newHistory(gathered.now),
    inFlight: READ_WORKLOAD.inFlight(fact, gathered),
    heardAt: READ_WORKLOAD.heardAt(fact, gathered),
    used: READ_WORKLOAD.used(fact, gathered),
    stopUnderWay: READ_WORKLOAD.stopUnderWay(fact, gathered),
    probeUnderWay: READ_WORKLOAD.probeUnderWay(fact, gathered),
    crashNoteUnderWay: READ_WORKLOAD.crashNoteUnderWay(fact, gathered),
  };
}

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

const SLOT_KEYS = keysOf(READ);
const WORKLOAD_KEYS = keysOf(READ_WORKLOAD);

/**
 * Whether facts of an earlier pass hold in this one: each is the same object, or an equal number or text. One that was
 * made again counts as another one. `before`: what they are known to follow from; the sooner the same as `after`, the
 * less is compared.
 */
export function stillHolds(facts: SlotFacts, before: SlotSources, after: SlotSources, gathered: Gathered): boolean {
  if (!hasSameParts(before, after)) for (const key of SLOT_KEYS) if (facts[key] !== READ[key](after)) return false;
  const present = gathered.workloads.get(after.slot.name);
  if (present === undefined || present.length !== facts.workloads.length) return (present?.length ?? 0) === facts.workloads.length;
  return present.every((fact, index) => {
    const known = facts.workloads[index];
    if (known === undefined || known.known !== gathered.observed.histories.get(fact.id)) return false;
    return WORKLOAD_KEYS.every((key) => known[key] === READ_WORKLOAD[key](fact, gathered));
  });
}

function hasSameParts<Table extends object>(before: Table, after: Table): boolean {
  for (const key in after) if (before[key] !== after[key]) return false;
  return true;
}

function keysOf<Table extends object>(table: Table): readonly (keyof Table)[] {
  const all: (keyof Table)[] = [];
  for (const key in table) all.push(key);
  return all;
}
