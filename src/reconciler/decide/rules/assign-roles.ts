/**
 * Which role each workload of a slot has: one serves, one is starting, the others drain. These are the rules of a swap:
 *
 *     a current workload passes         it serves, all others drain
 *     a current one does not pass yet   it is starting, and the old one serves until it passes,
 *                                       unless the old one must make room for it
 *     only an old one exists            the new one starts beside it where both fit (blue-green);
 *                                       otherwise the old one drains first
 *     none exists                       a new one starts as soon as nothing prevents it
 *     the slot is idle, and it can      the current one sleeps, and gets no requests
 *
 * A new workload that fails leaves the old one serving. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { Fault } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { describeAltered, repairsDrift } from './repair.ts';
import { COMPARING, isHeld, lacksBaseline, mayServe } from './evaluation.ts';
import { findFault, isPassing, whyGivenUp } from './workload-faults.ts';

export interface Draining {
  readonly workload: WorkloadView;
  readonly because: Finding;
  /** The failure to count in this generation; undefined if the workload drains for another reason. */
  readonly failure: Fault | undefined;
}

export interface Roles {
  /** Gets the requests. */
  readonly serving: WorkloadView | undefined;
  /** Is the wanted workload and does not answer yet. */
  readonly starting: WorkloadView | undefined;
  /** Found, not started, and not the wanted workload: its first probe decides whether it serves until replaced. */
  readonly unprobed: WorkloadView | undefined;
  /** Sleeps, or is to, and gets no requests. Default: none. */
  readonly sleeping?: WorkloadView;
  /** Is the wanted workload, has failed the cases of the slot, and stays loaded. Default: none. */
  readonly held?: WorkloadView;
  readonly draining: readonly Draining[];
  /** A workload is to be started in this pass. */
  readonly start: boolean;
  /** What a start is waiting for, where no gate explains it. */
  readonly waitsFor: Finding | undefined;
}

export interface RoleRules {
  /** Why the slot should not run now; undefined where it should. */
  readonly unwanted: Finding | undefined;
  /** The slot rests, and its server sleeps. */
  readonly asleep: boolean;
  /** There is memory for a server that is woken. */
  readonly fitsAwake: boolean;
  /** No gate is shut, and there is a template. */
  readonly startable: boolean;
  /** There is memory for a new workload beside all that exist now. */
  readonly fitsNow: boolean;
  /** As above, and the old and the new workload fit beside everything that is admitted. */
  readonly fitsBeside: boolean;
}

export function assignRoles(view: SlotView, rules: RoleRules): Roles {
  const faulty = view.workloads.flatMap((workload) => drainFaulty(workload, view, rules.unwanted) ?? []);
  const sound = view.workloads.filter((workload) => workload.alive && faulty.every((draining) => draining.workload !== workload));
  const { unwanted } = rules;
  if (unwanted !== undefined) {
    const draining = sound.filter((workload) => !isBeingApplied(workload, view)).map((workload) => leave(workload, view, unwanted));
    return { ...NO_ROLES, draining: [...faulty, ...draining] };
  }
  const current = pickBest(
    sound.filter((workload) => isCurrent(workload, view)),
    view,
  );
  if (rules.asleep && current !== undefined && current.sleepUnderWay !== 'wake') {
    const others = sound.filter((workload) => workload !== current).map((workload) => replace(workload, view));
    return { ...NO_ROLES, sleeping: current, draining: [...faulty, ...others] };
  }
  const old = pickBest(
    sound.filter((workload) => !isCurrent(workload, view) && isPassing(workload, view) && mayServe(workload, view)),
    view,
  );
  // The next pass knows what failed in this one; until then nothing new is started.
  const startable = rules.startable && faulty.every(({ failure }) => failure === undefined);
  const roles = current === undefined ? withoutCurrent(view, { ...rules, startable }, sound, old) : withCurrent(view, current, sound, old);
  const waits = isAsleep(roles.starting) && roles.starting?.sleepUnderWay === undefined && !rules.fitsAwake;
  const waitsFor = waits ? memoryNotFree : roles.waitsFor;
  return { ...roles, waitsFor, draining: [...faulty, ...countOneRepair(roles.draining)] };
}

export const isAsleep = (workload: WorkloadView | undefined): boolean => workload?.known.probe?.status === 'asleep';

/** However many workloads were altered, replacing them is one repair of the slot. */
function countOneRepair(draining: readonly Draining[]): readonly Draining[] {
  const isRepair = ({ failure }: Draining): boolean => failure?.kind === 'drift';
  const first = draining.findIndex(isRepair);
  return draining.map((each, index) => (isRepair(each) && index > first ? { ...each, failure: undefined } : each));
}

const NO_ROLES: Roles = { serving: undefined, starting: undefined, unprobed: undefined, draining: [], start: false, waitsFor: undefined };

function drainFaulty(workload: WorkloadView, view: SlotView, unwanted: Finding | undefined): Draining | undefined {
  if (workload.stopUnderWay) return undefined;
  const fault = findFault(workload, view);
  if (fault !== undefined) return { workload, because: fault, failure: counts(fault, workload, view, unwanted) ? fault : undefined };
  const because = whyGivenUp(workload, view) ?? whyLeftBehind(workload, view);
  return because === undefined ? undefined : drain(workload, because);
}

/** A controller that was killed may have created a container and not started it, and nothing else will. */
function whyLeftBehind(workload: WorkloadView, view: SlotView): Finding | undefined {
  const { fact, known } = workload;
  if (fact.phase !== 'created' || view.network === 'pods' || !view.leads) return undefined;
  if (fact.waitingReason !== undefined || fact.fetching !== undefined || fact.exit !== undefined) return undefined;
  if (known.origin !== undefined || isBeingApplied(workload, view)) return undefined;
  return { reason: 'WorkloadSurplus', message: 'An earlier controller created the workload and did not start it' };
}

function withCurrent(view: SlotView, current: WorkloadView, sound: readonly WorkloadView[], old: WorkloadView | undefined): Roles {
  const ready = isPassing(current, view) && isReachable(current) && mayServe(current, view);
  const standIn = ready || old === undefined || givesWay(old, current, view) ? undefined : old;
  const unprobed = ready || old !== undefined ? undefined : sound.find((workload) => workload !== current && isUntried(workload));
  const others = sound.filter((workload) => workload !== current && workload !== standIn && workload !== unprobed);
  const draining = others.map((workload) => (workload === old && !ready ? drain(workload, roomNeeded(current)) : replace(workload, view)));
  const serving = ready ? current : standIn !== undefined && isReachable(standIn) ? standIn : undefined;
  if (isHeld(current, view)) return { ...NO_ROLES, serving, held: current, unprobed, draining };
  return { ...NO_ROLES, serving, starting: ready ? undefined : current, unprobed, draining };
}

function withoutCurrent(view: SlotView, rules: RoleRules, sound: readonly WorkloadView[], old: WorkloadView | undefined): Roles {
  const others = sound.filter((workload) => workload !== old);
  const unprobed = old === undefined ? others.find((workload) => isUntried(workload)) : undefined;
  const surplus = others.filter((workload) => workload !== unprobed && !isBeingApplied(workload, view));
  const draining = surplus.map((workload) => replace(workload, view));
  if (old === undefined) {
    if (!rules.startable || view.applying !== undefined || view.stopping) return { ...NO_ROLES, unprobed, draining };
    if (view.workloads.length > 0) return { ...NO_ROLES, unprobed, draining, waitsFor: workloadsLeaving };
    return rules.fitsNow ? { ...NO_ROLES, start: true } : { ...NO_ROLES, waitsFor: memoryNotFree };
  }
  const keepOld = { ...NO_ROLES, serving: isReachable(old) ? old : undefined, draining };
  if (!rules.startable || view.applying !== undefined) return keepOld;
  if (isReachable(old) && lacksBaseline(old, view)) return { ...keepOld, waitsFor: COMPARING };
  if (view.workloads.length > 1 || view.stopping) return { ...keepOld, waitsFor: workloadsLeaving };
  if (isReachable(old) && swapsBeside(view, rules, old)) return { ...keepOld, start: true };
  return { ...NO_ROLES, draining: [...draining, replace(old, view)] };
}

const workloadsLeaving: Finding = { reason: 'WorkloadsLeaving', message: 'The slot starts when its earlier workloads have ended' };
const memoryNotFree: Finding = { reason: 'MemoryNotFree', message: 'The slot starts when draining workloads have released their memory' };

/** The new workload does not fit beside the old one, which may drain first. A drain that has begun is continued. */
function givesWay(old: WorkloadView, current: WorkloadView, { spec, network }: SlotView): boolean {
  if (network !== 'pods' || spec.lifecycle.swap === 'blue-green' || current.known.probe?.passed === true) return false;
  const { phase, waitingReason } = current.fact;
  return (phase === 'created' && waitingReason?.kind === 'placement') || old.known.drainingSince !== undefined;
}

function roomNeeded({ fact }: WorkloadView): Finding {
  const why = fact.waitingReason === undefined ? '' : `: ${fact.waitingReason.message}`;
  return { reason: 'RoomNeeded', message: `The old workload makes room for the new one${why}` };
}

/** A drain once begun continues, so that fluctuating free memory does not flip the decision. */
function swapsBeside(view: SlotView, rules: RoleRules, old: WorkloadView): boolean {
  if (old.known.drainingSince !== undefined) return false;
  const { swap } = view.spec.lifecycle;
  return swap === 'blue-green' || (swap === 'auto' && rules.fitsBeside);
}

/** At times no replica of a running workload is ready, so that there is nowhere to send a request. */
const isReachable = ({ fact }: WorkloadView): boolean => fact.endpoints.length > 0;

function isCurrent(workload: WorkloadView, view: SlotView): boolean {
  if (workload.standing === 'altered') return workload.updatable || !repairsDrift(view);
  return workload.standing === 'current';
}

/** Prefers a workload that passes, then unaltered, then last serving, then not draining, then the oldest. */
function pickBest(workloads: readonly WorkloadView[], view: SlotView): WorkloadView | undefined {
  if (workloads.length <= 1) return workloads[0];
  const rank = (workload: WorkloadView): readonly number[] => [
    isPassing(workload, view) ? 0 : 1,
    workload.standing === 'altered' ? 1 : 0,
    view.lastServing === workload.fact.id ? 0 : 1,
    workload.known.drainingSince === undefined ? 0 : 1,
    workload.known.seenAt,
  ];
  return [...workloads].sort((a, b) => compareRanks(rank(a), rank(b)) || (a.fact.id < b.fact.id ? -1 : 1))[0];
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((value, at) => value !== b[at]);
  return index < 0 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

/** Found running, where a probe can reach it, and not probed by this controller yet. */
function isUntried({ fact, known }: WorkloadView): boolean {
  return fact.phase === 'running' && fact.endpoints.length > 0 && known.origin === undefined && known.probe === undefined;
}

/** The action that starts it has not ended yet; it may be stopped afterwards. */
export function isBeingApplied({ fact }: WorkloadView, { applying }: SlotView): boolean {
  if (applying === undefined || applying.args.updatesInPlace !== undefined) return false;
  const { revision, name } = applying.args.workload;
  return revision === fact.revision && name === fact.name;
}

/** Drains a sound workload that is not kept. Where it was altered and is repaired, that counts as a repair, once. */
function replace(workload: WorkloadView, view: SlotView): Draining {
  const { standing, fact, updatable } = workload;
  if (standing === 'outdated') {
    const message = `Revision "${fact.revision}" runs and "${view.template?.revision ?? ''}" is wanted`;
    return drain(workload, { reason: 'RevisionOutdated', message });
  }
  if (standing !== 'altered' || updatable || view.spec.lifecycle.drift !== 'repair')
    return drain(workload, { reason: 'WorkloadSurplus', message: 'Another workload of the slot does the work' });
  const because = describeAltered(workload, view);
  const counted = view.repairs?.workload === fact.id || !repairsDrift(view);
  return { workload, because, failure: counted ? undefined : { ...because, kind: 'drift' } };
}

/** Memory that is taken from a server before it has answered counts as a failure: else it would start again at once. */
function leave(workload: WorkloadView, view: SlotView, because: Finding): Draining {
  const { known, fact } = workload;
  const inVain = because.reason === 'InsufficientMemory' && known.origin !== undefined && known.probe?.passed !== true;
  const counted = view.failures.some((failure) => failure.workload === fact.id);
  return { workload, because, failure: inVain && !counted ? { ...because, kind: 'withdrawn' } : undefined };
}

const drain = (workload: WorkloadView, because: Finding): Draining => ({ workload, because, failure: undefined });

/**
 * Whether a fault counts against this generation of the slot: the workload must be of the wanted revision, and must
 * not have been asked to leave. A workload counts once, unless its runtime restarts it.
 */
export function counts(fault: Fault, workload: WorkloadView, view: SlotView, unwanted: Finding | undefined): boolean {
  const { known, fact } = workload;
  const exited = fact.phase === 'exited';
  // A stop may fail after its signal. What its runtime restarts gets no signal from a stop that failed.
  const signalled = known.stops !== undefined && exited;
  const asked = (known.drainingSince !== undefined || signalled) && fault.kind === 'crash';
  const counted = view.failures.some((failure) => failure.workload === fact.id && failure.restartedInPlace !== true);
  // An earlier controller may have told its server to end. One of this controller crashed, also if nobody wants it now.
  const due = unwanted === undefined || (known.origin !== undefined && exited);
  return due && !asked && !counted && isSurelyCurrent(workload, view);
}

/** Without a template, only a workload that was started for this spec has surely not ended before the last edit. */
function isSurelyCurrent(workload: WorkloadView, view: SlotView): boolean {
  return view.template === undefined ? isSameValue(workload.known.origin?.spec, view.spec) : isCurrent(workload, view);
}
