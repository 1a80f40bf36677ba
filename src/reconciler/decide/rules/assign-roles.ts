/**
 * Which part each workload of a slot plays: one answers, one is to answer, the others leave. Holds the rules of the swap: beside the old
 * one where both fit, else after it has drained; and a new one that fails leaves the old one serving. Pure.
 */
import { findFault, givenUp, isPassing, mismatch, repairsDrift } from './checks.ts';
import type { Fault, Finding } from '../facts/finding.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

export interface Draining {
  readonly workload: WorkloadView;
  readonly because: Finding;
  /** What counts as a failure of this generation; undefined when it goes for another reason than its own fault. */
  readonly failure: Fault | undefined;
}

export interface Roles {
  /** Gets the requests. */
  readonly serving: WorkloadView | undefined;
  /** Is what is wanted, and does not answer yet. */
  readonly starting: WorkloadView | undefined;
  /** Not what is wanted, found rather than started by us: its first probe decides whether it may serve on until it is replaced. */
  readonly unprobed: WorkloadView | undefined;
  readonly draining: readonly Draining[];
  /** A workload shall be started in this pass. */
  readonly start: boolean;
  /** What a start still waits for, when nothing else says so. */
  readonly waitsFor: Finding | undefined;
}

export interface RoleRules {
  /** Why the slot is not to run now; undefined: it is. */
  readonly unwanted: Finding | undefined;
  /** All that a start needs is there, and nothing forbids it. */
  readonly startable: boolean;
  /** There is memory for a new workload beside all that exist now. */
  readonly fitsNow: boolean;
  /** The same, and both the old one and the new one fit beside everything that is admitted. */
  readonly fitsBeside: boolean;
}

export function assignRoles(view: SlotView, rules: RoleRules): Roles {
  const faults = view.workloads.flatMap((workload): readonly Draining[] => {
    if (workload.stopUnderWay) return [];
    const fault = findFault(workload, view);
    if (fault !== undefined) return [{ workload, because: fault, failure: blame(workload, fault, view, rules.unwanted) }];
    const because = givenUp(workload, view);
    return because === undefined ? [] : [{ workload, because, failure: undefined }];
  });
  const sound = view.workloads.filter((workload) => workload.alive && faults.every((draining) => draining.workload !== workload));
  const { unwanted } = rules;
  if (unwanted !== undefined) {
    const draining = sound.filter((workload) => !isBeingApplied(workload, view)).map((workload) => go(workload, unwanted));
    return { ...NOBODY, draining: [...faults, ...draining] };
  }
  const current = best(
    sound.filter((workload) => isCurrent(workload, view)),
    view,
  );
  const old = best(
    sound.filter((workload) => !isCurrent(workload, view) && isPassing(workload, view)),
    view,
  );
  // What failed in this very pass is a failure of the next one's facts: until then nothing new begins.
  const startable = rules.startable && faults.every(({ failure }) => failure === undefined);
  const roles = current === undefined ? withoutCurrent(view, { ...rules, startable }, sound, old) : withCurrent(view, current, sound, old);
  return { ...roles, draining: [...faults, ...roles.draining] };
}

const NOBODY: Roles = { serving: undefined, starting: undefined, unprobed: undefined, draining: [], start: false, waitsFor: undefined };

function withCurrent(view: SlotView, current: WorkloadView, sound: readonly WorkloadView[], old: WorkloadView | undefined): Roles {
  const ready = isPassing(current, view) && isReachable(current);
  const standIn = ready || old === undefined || givesWay(old, current, view) ? undefined : old;
  const unprobed = ready || old !== undefined ? undefined : sound.find((workload) => workload !== current && isUntried(workload));
  const others = sound.filter((workload) => workload !== current && workload !== standIn && workload !== unprobed);
  const draining = others.map((workload) => go(workload, workload === old && !ready ? roomNeeded(current) : reasonToGo(workload, view)));
  const serving = ready ? current : standIn !== undefined && isReachable(standIn) ? standIn : undefined;
  return { ...NOBODY, serving, starting: ready ? undefined : current, unprobed, draining };
}

/** The new one finds no place beside the old one, which may go first. A drain that has begun goes on. */
function givesWay(old: WorkloadView, current: WorkloadView, { spec, network }: SlotView): boolean {
  if (network !== 'pods' || spec.lifecycle.swap === 'blue-green' || current.known.probe?.passed === true) return false;
  const { phase, waitingReason } = current.fact;
  return (phase === 'created' && waitingReason?.kind === 'placement') || old.known.drainingSince !== undefined;
}

function roomNeeded({ fact }: WorkloadView): Finding {
  return {
    reason: 'RoomNeeded',
    message: `It makes room for the new one${fact.waitingReason === undefined ? '' : `: ${fact.waitingReason.message}`}`,
  };
}

/** Requests can be sent to it: at times no replica of a workload that runs is ready. */
function isReachable({ fact }: WorkloadView): boolean {
  return fact.endpoints.length > 0;
}

function withoutCurrent(view: SlotView, rules: RoleRules, sound: readonly WorkloadView[], old: WorkloadView | undefined): Roles {
  const others = sound.filter((workload) => workload !== old);
  const unprobed = old === undefined ? others.find((workload) => isUntried(workload)) : undefined;
  const surplus = others.filter((workload) => workload !== unprobed && !isBeingApplied(workload, view));
  const draining = surplus.map((workload) => go(workload, reasonToGo(workload, view)));
  const mayStart = rules.startable && view.applying === undefined && !view.stopping;
  if (old === undefined) {
    if (!mayStart) return { ...NOBODY, unprobed, draining };
    if (view.workloads.length > 0) return { ...NOBODY, unprobed, draining, waitsFor: waitsForOthers };
    return rules.fitsNow ? { ...NOBODY, start: true } : { ...NOBODY, waitsFor: waitsForMemory };
  }
  const keepOld = { ...NOBODY, serving: isReachable(old) ? old : undefined, draining };
  if (!rules.startable || view.applying !== undefined) return keepOld;
  if (view.workloads.length > 1 || view.stopping) return { ...keepOld, waitsFor: waitsForOthers };
  if (isReachable(old) && swapsBeside(view, rules, old)) return { ...keepOld, start: true };
  return { ...NOBODY, draining: [...draining, go(old, reasonToGo(old, view))] };
}

const waitsForOthers: Finding = { reason: 'WorkloadsLeaving', message: 'It starts when the workloads before it are gone' };
const waitsForMemory: Finding = {
  reason: 'MemoryNotFree',
  message: 'It starts when workloads that are draining have given their memory back',
};

/** Blue-green or drain. A drain that has begun goes on, lest a figure that trembles makes the slot change its mind. */
function swapsBeside(view: SlotView, rules: RoleRules, old: WorkloadView): boolean {
  if (old.known.drainingSince !== undefined) return false;
  const { swap } = view.spec.lifecycle;
  return swap === 'blue-green' || (swap === 'auto' && rules.fitsBeside);
}

function isCurrent(workload: WorkloadView, view: SlotView): boolean {
  if (workload.standing === 'altered') return workload.updatable || !repairsDrift(view);
  return workload.standing === 'current';
}

/** The one to keep among equals: one that passes, then one that had requests before, then the oldest. */
function best(workloads: readonly WorkloadView[], view: SlotView): WorkloadView | undefined {
  if (workloads.length <= 1) return workloads[0];
  const rank = (workload: WorkloadView): readonly number[] => [
    isPassing(workload, view) ? 0 : 1,
    view.previous?.serving === workload.fact.id ? 0 : 1,
    workload.known.drainingSince === undefined ? 0 : 1,
    workload.known.seenAt,
  ];
  return [...workloads].sort((a, b) => compare(rank(a), rank(b)) || (a.fact.id < b.fact.id ? -1 : 1))[0];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((value, at) => value !== b[at]);
  return index < 0 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

/** Found running, where a probe can reach it, and not probed by this controller yet. */
function isUntried({ fact, known }: WorkloadView): boolean {
  return fact.phase === 'running' && fact.endpoints.length > 0 && known.origin === undefined && known.probe === undefined;
}

/** The start of it has not been answered yet: it may be stopped once it has. */
function isBeingApplied({ fact }: WorkloadView, { applying }: SlotView): boolean {
  return (
    applying !== undefined &&
    applying.args.inPlace === undefined &&
    applying.args.workload.revision === fact.revision &&
    applying.args.workload.name === fact.name
  );
}

function reasonToGo(workload: WorkloadView, view: SlotView): Finding {
  return mismatch(workload, view) ?? { reason: 'WorkloadSurplus', message: 'Another workload of the slot does its work' };
}

function go(workload: WorkloadView, because: Finding): Draining {
  const drifted = because.reason === 'WorkloadAltered';
  return { workload, because, failure: drifted ? { ...because, kind: 'drift' } : undefined };
}

/** A fault counts against the generation when the workload is what is wanted and nobody had asked it to leave; and once, but for crashes in place. */
export function blame<Blamed extends Fault>(
  workload: WorkloadView,
  fault: Blamed,
  view: SlotView,
  unwanted: Finding | undefined,
): Blamed | undefined {
  const asked = workload.known.drainingSince !== undefined && fault.kind === 'crash';
  const counted = view.failures.some(({ workload: id, kind, inPlace }) => id === workload.fact.id && kind !== 'drift' && inPlace !== true);
  return unwanted !== undefined || asked || counted || !isCurrent(workload, view) ? undefined : fault;
}
