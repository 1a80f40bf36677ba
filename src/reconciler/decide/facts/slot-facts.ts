/**
 * The facts of one slot, looked up in the facts of a pass. A view is made of `SlotFacts` and the time, and of nothing
 * else, so that a slot whose facts are the same objects as in an earlier pass needs no new view. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { ModelFacts } from '../../../providers/provider.ts';
import type { WorkloadId } from '../../../schema/words/names.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { companionsOf } from '../../../schema/slot/model-options.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import type { SlotState } from '../../../schema/status/slot-status.ts';
import type { Demand, DesiredSlot, ImageReference, ModelPresence, ObservedWorkload, WorkloadActivity } from '../../ports.ts';
import type { Judgement } from './choose-backend.ts';
import type { MeasuredMemory } from './measured-memory.ts';
import type { Newcomer } from './memory-pools.ts';
import {
  applyKey,
  countKey,
  evaluateKey,
  noteCrashKey,
  probeKey,
  pullImageKey,
  pullModelKey,
  settleKey,
  sleepKey,
  stopKey,
  type Action,
} from './actions.ts';
import type { Attempts, Decision, Observed, RunningAction } from './facts.ts';
import { buildKey, type Circumstances, type Gathered, type ImageFacts } from './gather.ts';
import { newHistory, type WorkloadHistory } from './workload-history.ts';

/** Facts about one workload in a view. */
export interface WorkloadFacts {
  readonly fact: ObservedWorkload;
  readonly known: WorkloadHistory;
  readonly inFlight: number;
  /** When bytes of an answer last arrived, in monotonic milliseconds; set only if the last probe got no answer. */
  readonly heardAt: number | undefined;
  /** Requests that have ended on it, and those that it failed; set only while its slot is watched. */
  readonly ended: number | undefined;
  readonly failed: number | undefined;
  /** It has had a request. */
  readonly used: boolean;
  readonly stopUnderWay: boolean;
  /** When the probe that is under way began. */
  readonly probeSince: number | undefined;
  readonly crashNoteUnderWay: boolean;
  /** `sleep` or `wake`, while its server is put to sleep or woken. */
  readonly sleepUnderWay: Action['name'] | undefined;
  readonly countUnderWay: boolean;
}

/** Inputs of a slot's view except the time. The same field by field and workload by workload means an equal view. */
export interface SlotFacts {
  readonly circumstances: Circumstances;
  readonly slot: DesiredSlot;
  readonly judged: Judgement | undefined;
  readonly aliasConflicts: readonly string[];
  readonly fallbackProblems: readonly string[];
  readonly model: ModelPresence | undefined;
  /** All models, for a slot whose server loads more than one. */
  readonly companions: Gathered['shared']['models'] | undefined;
  readonly image: ImageReference | undefined;
  readonly imagePresent: boolean;
  /** The id that the wanted image stands for; undefined where it is not known. */
  readonly imageId: string | undefined;
  /** The flags of its program; `asking`: known soon. */
  readonly options: ImageFacts['options'];
  /** Peak measured memory of the slot's servers, over all revisions. */
  readonly measured: MeasuredMemory | undefined;
  readonly workloads: readonly WorkloadFacts[];
  readonly waiting: number;
  /** Monotonic milliseconds; undefined where it is not known since when the oldest request waits. */
  readonly waitingSince: number | undefined;
  /** Key of the caller whose request waits for longest. */
  readonly firstCaller: string | undefined;
  readonly lastAskedAt: number | undefined;
  readonly lastActiveAt: number | undefined;
  /** Attempts of every generation. */
  readonly attempts: Attempts | undefined;
  readonly applying: Extract<Action, { name: 'apply' }> | undefined;
  readonly stopping: boolean;
  /** A model answers its cases. */
  readonly evaluating: boolean;
  /** Which of its texts counts is being settled. */
  readonly settling: boolean;
  /** The pulls under way of its image, and of the first of its models that is pulled. */
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
  readonly lastGaveWayTo: Newcomer | undefined;
  /** In the last pass, the slot had been idle for so long that it rested. */
  readonly lastIdle: boolean;
  /** In the last pass, the slot rested for any such reason, or lacked memory; or there was none. */
  readonly lastRested: boolean;
  readonly lastLoadsFor: string | undefined;
  /** In the last pass, the slot ran ahead of requests, and none has come since. */
  readonly lastAhead: boolean;
  /** Why the slot is to be loaded ahead of requests. */
  readonly warm: Finding | undefined;
  /** A schedule loads it within a minute. */
  readonly warmSoon: boolean;
}

const NO_CONFLICTS: readonly string[] = [];
const LOADING: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming']);

const IDLE: ReadonlySet<Reason> = new Set(['IdleTimedOut', 'Sleeping']);
const UNLOADED: ReadonlySet<Reason> = new Set(['NotAskedFor', 'GaveWay', 'InsufficientMemory']);

/** All that the facts of a slot are made of. The same field by field and workload by workload means the same facts. */
export interface SlotSources {
  readonly slot: DesiredSlot;
  readonly shared: Gathered['shared'];
  readonly workloads: readonly WorkloadSources[];
  /** Undefined where no action of the slot is under way: of thousands of slots, few have any. */
  readonly running: Observed['running'] | undefined;
  readonly stopping: boolean;
  readonly demand: Demand | undefined;
  /** The last decision that was published. */
  readonly last: Decision | undefined;
  readonly measured: MeasuredMemory | undefined;
  readonly lastActiveAt: number | undefined;
  readonly attempts: Attempts | undefined;
  readonly warm: Finding | undefined;
  readonly warmSoon: boolean;
}

interface WorkloadSources extends Pick<WorkloadFacts, 'fact' | 'known'> {
  readonly activity: WorkloadActivity | undefined;
}

const NO_WORKLOADS: readonly ObservedWorkload[] = [];

export function sourcesOf(slot: DesiredSlot, gathered: Gathered): SlotSources {
  const { shared, observed, stopping, busy, workloads } = gathered;
  const { name } = slot;
  return {
    slot,
    shared,
    workloads: (workloads.get(name) ?? NO_WORKLOADS).map((fact) => workloadSourcesOf(fact, gathered)),
    running: busy.has(name) ? observed.running : undefined,
    stopping: stopping.has(name),
    demand: observed.demand.get(name),
    last: observed.published.get(name)?.decision,
    measured: observed.measured?.get(name),
    lastActiveAt: observed.lastActive.get(name),
    attempts: observed.attempts.get(name),
    warm: observed.warm?.get(name),
    warmSoon: observed.warmSoon?.has(name) === true,
  };
}

const workloadSourcesOf = (fact: ObservedWorkload, { observed, now }: Gathered): WorkloadSources => ({
  fact,
  known: observed.histories.get(fact.id) ?? newHistory(fact.slot, undefined, now),
  activity: observed.activity.get(fact.id),
});

export const slotFactsOf = (slot: DesiredSlot, gathered: Gathered): SlotFacts => factsOf(sourcesOf(slot, gathered));

/** Each fact is an object of the pass, a number or a text: `isSameAs` compares no further. */
export function factsOf(sources: SlotSources): SlotFacts {
  const { slot, shared, running, demand, last, lastActiveAt } = sources;
  const { name, spec } = slot;
  const { pulls } = shared;
  const own = [spec.model.default, ...companionsOf(spec)];
  const { image, present, imageId, options } = shared.images.get(spec.provider)?.get(buildKey(spec)) ?? {};
  return {
    circumstances: shared.circumstances,
    slot,
    judged: shared.judged.get(spec.provider),
    aliasConflicts: shared.aliasConflicts.get(name) ?? NO_CONFLICTS,
    fallbackProblems: shared.fallbackProblems.get(name) ?? NO_CONFLICTS,
    model: shared.models.get(spec.model.default),
    companions: own.length > 1 ? shared.models : undefined,
    image,
    imagePresent: present === true,
    imageId,
    options,
    measured: sources.measured,
    workloads: sources.workloads.map((each) => workloadFacts(each, running, slot.rollout?.watched !== undefined)),
    waiting: demand?.waiting ?? 0,
    waitingSince: demand === undefined || demand.waiting === 0 ? undefined : (demand.waitingSince ?? demand.lastAskedAt),
    firstCaller: demand?.caller,
    lastAskedAt: demand?.lastAskedAt,
    lastActiveAt,
    attempts: sources.attempts,
    applying: applyOf(running?.get(applyKey(name))),
    stopping: sources.stopping,
    evaluating: running?.has(evaluateKey(name)) === true,
    settling: running?.has(settleKey(name)) === true,
    imagePull: image === undefined || pulls.size === 0 ? undefined : pulls.get(pullImageKey(image)),
    modelPull: pulls.size === 0 ? undefined : own.map((id) => pulls.get(pullModelKey(id))).find((pull) => pull !== undefined),
    lastServing: last?.serving,
    lastCapabilities: last?.capabilities,
    lastServedModel: last?.servedModel,
    // Only the parts that a view needs: another place in the memory order is no other slot.
    lastUnserved: last !== undefined && (LOADING.has(last.state) || last.findings.some(({ reason }) => reason === 'NotAskedFor')),
    lastGaveWay: last?.findings.some(({ reason }) => reason === 'InsufficientMemory' || reason === 'GaveWay') === true,
    lastGaveWayTo: last?.gaveWayTo,
    lastIdle: last?.findings.some(({ reason }) => IDLE.has(reason)) === true,
    lastRested: last?.findings.some(({ reason }) => IDLE.has(reason) || UNLOADED.has(reason)) !== false,
    lastLoadsFor: last?.loadsFor,
    lastAhead: last?.ahead !== undefined && last.ahead.lastActiveAt === lastActiveAt,
    warm: sources.warm,
    warmSoon: sources.warmSoon,
  };
}

const applyOf = (running: RunningAction | undefined) => (running?.action.name === 'apply' ? running.action : undefined);

export const workloadFactsOf = (fact: ObservedWorkload, gathered: Gathered): WorkloadFacts =>
  workloadFacts(workloadSourcesOf(fact, gathered), gathered.observed.running, false);

function workloadFacts({ fact, known, activity }: WorkloadSources, running: SlotSources['running'], isWatched: boolean): WorkloadFacts {
  const { id, phase } = fact;
  return {
    fact,
    known,
    inFlight: activity?.inFlight ?? 0,
    heardAt: known.probe?.status === 'silent' ? activity?.lastHeardAt : undefined,
    ended: isWatched ? activity?.ended : undefined,
    failed: isWatched ? activity?.failed : undefined,
    used: activity?.lastUsedAt !== undefined,
    stopUnderWay: phase === 'stopping' || running?.has(stopKey(id)) === true,
    probeSince: running?.get(probeKey(id))?.startedAt,
    crashNoteUnderWay: running?.has(noteCrashKey(id)) === true,
    sleepUnderWay: running?.get(sleepKey(id))?.action.name,
    countUnderWay: running?.has(countKey(id)) === true,
  };
}

/** Whether those of an earlier pass hold in this one. An object that was made again counts as another one. */
export function isSameAs<Table extends SlotFacts | SlotSources>(before: Table, after: Table): boolean {
  const { workloads } = before;
  if (!hasSameParts(before, after, 'workloads') || workloads.length !== after.workloads.length) return false;
  return after.workloads.every((workload, index) => hasSameParts(workloads[index] ?? workload, workload));
}

function hasSameParts<Table extends object>(before: Table, after: Table, except?: keyof Table): boolean {
  for (const key in after) if (key !== except && before[key] !== after[key]) return false;
  return true;
}
