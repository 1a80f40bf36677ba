/**
 * The facts of one slot, looked up in the facts of a pass. A view is made of `SlotFacts` and the time, and of nothing else, so that a slot whose facts are the same objects as
 * in an earlier pass needs no new view. Pure.
 */
import type { ModelFacts } from '../../../providers/provider.ts';
import type { WorkloadId } from '../../../schema/names.ts';
import type { Capability } from '../../../schema/provider-kinds.ts';
import type { SlotState } from '../../../schema/slot-status.ts';
import type { DesiredSlot, ImageReference, ModelPresence, ObservedWorkload } from '../../ports.ts';
import type { Judgement } from '../rules/choose-backend.ts';
import type { MeasuredMemory } from '../rules/measured-memory.ts';
import { pullImageKey, pullModelKey } from './actions.ts';
import type { Attempts, Decision, RunningAction, WorkloadHistory } from './facts.ts';
import type { Apply, Circumstances, Gathered } from './gather.ts';

/** What a view shows of one workload. */
export interface WorkloadFacts {
  readonly fact: ObservedWorkload;
  readonly known: WorkloadHistory;
  readonly inFlight: number;
  /** When the last bytes of an answer came from it, in monotonic milliseconds; only where its last probe was not answered, as it is of no use otherwise. */
  readonly heardAt: number | undefined;
  /** It has had a request. */
  readonly used: boolean;
  readonly stopUnderWay: boolean;
  readonly probeUnderWay: boolean;
  readonly crashNoteUnderWay: boolean;
}

/** Everything that the view of a slot is made of, except the time. Two that are the same field by field, and workload by workload, give the same view. */
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
  /** The most that servers of the slot, of any revision, were measured to use. */
  readonly measured: MeasuredMemory | undefined;
  readonly workloads: readonly WorkloadFacts[];
  readonly waiting: number;
  /** Monotonic milliseconds; undefined where it is not known since when the oldest request waits. */
  readonly waitingSince: number | undefined;
  readonly lastAskedAt: number | undefined;
  readonly lastActiveAt: number | undefined;
  /** Of any generation. */
  readonly attempts: Attempts | undefined;
  readonly applying: Apply | undefined;
  readonly stopping: boolean;
  /** The pulls under way of its image and of its model. */
  readonly imagePull: RunningAction | undefined;
  readonly modelPull: RunningAction | undefined;
  /** Of what was published last: the workload that served, what the slot could do, and the model that was served. */
  readonly lastServing: WorkloadId | undefined;
  readonly lastCapabilities: readonly Capability[] | undefined;
  readonly lastServedModel: ModelFacts | undefined;
  /** In the last pass, the slot was being loaded, or its load was given up and no request has asked since. */
  readonly lastUnserved: boolean;
  /** In the last pass, the slot had to leave its memory to others, or has not been asked for since it did. */
  readonly lastGaveWay: boolean;
}

type Readers<Facts, From> = { readonly [Key in keyof Facts]: (from: From, gathered: Gathered) => Facts[Key] };

/** Where each fact of a slot comes from. What is made and what is compared is read here, so that no fact can be forgotten. */
const READ: Readers<Omit<SlotFacts, 'workloads'>, DesiredSlot> = {
  circumstances: (_slot, { circumstances }) => circumstances,
  slot: (slot) => slot,
  judged: ({ spec }, { judged }) => judged.get(spec.provider),
  aliasConflicts: ({ name }, { aliasConflicts }) => (aliasConflicts.size === 0 ? undefined : aliasConflicts.get(name)) ?? NO_CONFLICTS,
  model: ({ spec }, { observed }) => observed.models.get(spec.model.default),
  image: (slot, gathered) => imageOf(slot, gathered)?.image,
  imagePresent: (slot, gathered) => imageOf(slot, gathered)?.present === true,
  imageId: (slot, gathered) => imageOf(slot, gathered)?.imageId,
  measured: ({ name }, { observed }) => observed.measured?.get(name),
  waiting: ({ name }, { observed }) => observed.demand.get(name)?.waiting ?? 0,
  waitingSince({ name }, { observed }) {
    const demand = observed.demand.get(name);
    return demand === undefined || demand.waiting === 0 ? undefined : (demand.waitingSince ?? demand.lastAskedAt);
  },
  lastAskedAt: ({ name }, { observed }) => observed.demand.get(name)?.lastAskedAt,
  lastActiveAt: ({ name }, { observed }) => observed.lastActive.get(name),
  attempts: ({ name }, { observed }) => observed.attempts.get(name),
  applying: ({ name }, { underWay }) => underWay.applies.get(name),
  stopping: ({ name }, { underWay }) => underWay.stopping.has(name),
  imagePull(slot, gathered) {
    const { pulls } = gathered.underWay;
    const image = pulls.size === 0 ? undefined : imageOf(slot, gathered)?.image;
    return image === undefined ? undefined : pulls.get(pullImageKey(image));
  },
  modelPull({ spec }, { underWay }) {
    return underWay.pulls.size === 0 ? undefined : underWay.pulls.get(pullModelKey(spec.model.default));
  },
  lastServing: (slot, gathered) => lastOf(slot, gathered)?.serving,
  lastCapabilities: (slot, gathered) => lastOf(slot, gathered)?.capabilities,
  lastServedModel: (slot, gathered) => lastOf(slot, gathered)?.servedModel,
  lastUnserved(slot, gathered) {
    const last = lastOf(slot, gathered);
    return last !== undefined && (LOADING.has(last.state) || last.findings.some(({ reason }) => reason === 'NotAskedFor'));
  },
  lastGaveWay: (slot, gathered) =>
    lastOf(slot, gathered)?.findings.some(({ reason }) => reason === 'InsufficientMemory' || reason === 'GaveWay') === true,
};

/** The same for a workload. */
const READ_WORKLOAD: Readers<Omit<WorkloadFacts, 'known'>, ObservedWorkload> = {
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

function imageOf({ spec }: DesiredSlot, { images }: Gathered) {
  return images.get(spec.provider)?.get(spec.backend);
}

/** Only what a view needs of it: a slot that was published with another place in the order of the memory is no other slot. */
function lastOf({ name }: DesiredSlot, { observed }: Gathered): Decision | undefined {
  return observed.published.get(name)?.decision;
}

export function slotFactsOf(slot: DesiredSlot, gathered: Gathered): SlotFacts {
  return {
    circumstances: READ.circumstances(slot, gathered),
    slot: READ.slot(slot, gathered),
    judged: READ.judged(slot, gathered),
    aliasConflicts: READ.aliasConflicts(slot, gathered),
    model: READ.model(slot, gathered),
    image: READ.image(slot, gathered),
    imagePresent: READ.imagePresent(slot, gathered),
    imageId: READ.imageId(slot, gathered),
    measured: READ.measured(slot, gathered),
    workloads: (gathered.workloads.get(slot.name) ?? []).map((fact) => workloadFactsOf(fact, gathered)),
    waiting: READ.waiting(slot, gathered),
    waitingSince: READ.waitingSince(slot, gathered),
    lastAskedAt: READ.lastAskedAt(slot, gathered),
    lastActiveAt: READ.lastActiveAt(slot, gathered),
    attempts: READ.attempts(slot, gathered),
    applying: READ.applying(slot, gathered),
    stopping: READ.stopping(slot, gathered),
    imagePull: READ.imagePull(slot, gathered),
    modelPull: READ.modelPull(slot, gathered),
    lastServing: READ.lastServing(slot, gathered),
    lastCapabilities: READ.lastCapabilities(slot, gathered),
    lastServedModel: READ.lastServedModel(slot, gathered),
    lastUnserved: READ.lastUnserved(slot, gathered),
    lastGaveWay: READ.lastGaveWay(slot, gathered),
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

/** Whether facts of an earlier pass hold in this one: each is the same object, or an equal number or text. One that was made again counts as another one. */
export function stillHolds(facts: SlotFacts, slot: DesiredSlot, gathered: Gathered): boolean {
  for (const key of SLOT_KEYS) if (facts[key] !== READ[key](slot, gathered)) return false;
  const present = gathered.workloads.get(slot.name);
  if (present === undefined || present.length !== facts.workloads.length) return (present?.length ?? 0) === facts.workloads.length;
  return present.every((fact, index) => {
    const before = facts.workloads[index];
    if (before === undefined || before.known !== gathered.observed.histories.get(fact.id)) return false;
    return WORKLOAD_KEYS.every((key) => before[key] === READ_WORKLOAD[key](fact, gathered));
  });
}

function keysOf<Table extends object>(table: Table): readonly (keyof Table)[] {
  const all: (keyof Table)[] = [];
  for (const key in table) all.push(key);
  return all;
}
