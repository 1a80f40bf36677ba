/**
 * Which part each workload of a slot plays: one answers, one is to answer, the others leave. Holds the rules of the swap: beside the old
 * one where both fit, else after it has drained; and a new one that fails leaves the old one serving. Pure.
 */
import { findFault, givenUp, isPassing, mismatch, repairsDrift, type Fault } from './checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

export interface Leaving {
  readonly workload: WorkloadView;
  readonly because: Finding;
  /** What counts as a failure of this generation; undefined when it goes for another reason than its own fault. */
  readonly failure: Fault | undefined;
}

export interface Cast {
  /** Gets the requests. */
  readonly answering: WorkloadView | undefined;
  /** Is what is wanted, and does not answer yet. */
  readonly coming: WorkloadView | undefined;
  /** Not what is wanted, found rather than started by us: its first probe decides whether it may serve on until it is replaced. */
  readonly pending: WorkloadView | undefined;
  readonly leaving: readonly Leaving[];
  /** A workload shall be started in this pass. */
  readonly start: boolean;
  /** What a start still waits for, when nothing else says so. */
  readonly waitsFor: Finding | undefined;
}

export interface CastRules {
  /** Why the slot is not to run now; undefined: it is. */
  readonly unwanted: Finding | undefined;
  /** All that a start needs is there, and nothing forbids it. */
  readonly startable: boolean;
  /** There is memory for a new workload beside all that exist now. */
  readonly fitsNow: boolean;
  /** The same, and both the old one and the new one fit beside everything that is admitted. */
  readonly fitsBeside: boolean;
}

export function castRoles(view: SlotView, rules: CastRules): Cast {
  const faults = view.workloads.flatMap((workload): readonly Leaving[] => {
    if (workload.stopUnderWay) return [];
    const fault = findFault(workload, view);
    if (fault !== undefined) return [{ workload, because: fault, failure: blame(workload, fault, view, rules.unwanted) }];
    const because = givenUp(workload, view);
    return because === undefined ? [] : [{ workload, because, failure: undefined }];
  });
  const sound = view.workloads.filter((workload) => workload.alive && faults.every((leaving) => leaving.workload !== workload));
  const { unwanted } = rules;
  if (unwanted !== undefined) {
    const leaving = sound.filter((workload) => !isBeingApplied(workload, view)).map((workload) => go(workload, unwanted));
    return { ...NOBODY, leaving: [...faults, ...leaving] };
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
  const cast = current === undefined ? withoutCurrent(view, { ...rules, startable }, sound, old) : withCurrent(view, current, sound, old);
  return { ...cast, leaving: [...faults, ...cast.leaving] };
}

const NOBODY: Cast = { answering: undefined, coming: undefined, pending: undefined, leaving: [], start: false, waitsFor: undefined };

function withCurrent(view: SlotView, current: WorkloadView, sound: readonly WorkloadView[], old: WorkloadView | undefined): Cast {
  const ready = isPassing(current, view) && isReachable(current);
  const standIn = ready || old === undefined || givesWay(old, current, view) ? undefined : old;
  const pending = ready || old !== undefined ? undefined : sound.find((workload) => workload !== current && isUntried(workload));
  const goers = sound.filter((workload) => workload !== current && workload !== standIn && workload !== pending);
  const leaving = goers.map((workload) => go(workload, workload === old && !ready ? roomNeeded(current) : reasonToGo(workload, view)));
  const answering = ready ? current : standIn !== undefined && isReachable(standIn) ? standIn : undefined;
  return { ...NOBODY, answering, coming: ready ? undefined : current, pending, leaving };
}

/** The new one finds no place beside the old one, which may go first. A drain that has begun goes on. */
function givesWay(old: WorkloadView, current: WorkloadView, { spec, network }: SlotView): boolean {
  if (network !== 'pods' || spec.lifecycle.swap === 'blue-green' || current.known.probe?.passed === true) return false;
  const { phase, trouble } = current.fact;
  return (phase === 'created' && trouble?.kind === 'placement') || old.known.drainingSince !== undefined;
}

function roomNeeded({ fact }: WorkloadView): Finding {
  return { name: 'roomNeeded', message: `It makes room for the new one${fact.trouble === undefined ? '' : `: ${fact.trouble.message}`}` };
}

/** Requests can be sent to it: at times no replica of a workload that runs is ready. */
function isReachable({ fact }: WorkloadView): boolean {
  return fact.endpoints.length > 0;
}

function withoutCurrent(view: SlotView, rules: CastRules, sound: readonly WorkloadView[], old: WorkloadView | undefined): Cast {
  const others = sound.filter((workload) => workload !== old);
  const pending = old === undefined ? others.find((workload) => isUntried(workload)) : undefined;
  const goers = others.filter((workload) => workload !== pending && !isBeingApplied(workload, view));
  const leaving = goers.map((workload) => go(workload, reasonToGo(workload, view)));
  const mayStart = rules.startable && view.applying === undefined && !view.stopping;
  if (old === undefined) {
    if (!mayStart) return { ...NOBODY, pending, leaving };
    if (view.workloads.length > 0) return { ...NOBODY, pending, leaving, waitsFor: waitsForOthers };
    return rules.fitsNow ? { ...NOBODY, start: true } : { ...NOBODY, waitsFor: waitsForMemory };
  }
  const serving = { ...NOBODY, answering: isReachable(old) ? old : undefined, leaving };
  if (!rules.startable || view.applying !== undefined) return serving;
  if (view.workloads.length > 1 || view.stopping) return { ...serving, waitsFor: waitsForOthers };
  if (isReachable(old) && swapsBeside(view, rules, old)) return { ...serving, start: true };
  return { ...NOBODY, leaving: [...leaving, go(old, reasonToGo(old, view))] };
}

const waitsForOthers: Finding = { name: 'workloadsLeaving', message: 'It starts when the workloads before it are gone' };
const waitsForMemory: Finding = {
  name: 'memoryNotFree',
  message: 'It starts when workloads that are leaving have given their memory back',
};

/** Blue-green or drain. A drain that has begun goes on, lest a figure that trembles makes the slot change its mind. */
function swapsBeside(view: SlotView, rules: CastRules, old: WorkloadView): boolean {
  if (old.known.drainingSince !== undefined) return false;
  const { swap } = view.spec.lifecycle;
  return swap === 'blue-green' || (swap === 'auto' && rules.fitsBeside);
}

function isCurrent(workload: WorkloadView, view: SlotView): boolean {
  if (workload.standing === 'altered') return workload.mendable || !repairsDrift(view);
  return workload.standing === 'current';
}

/** The one to keep among equals: one that passes, then one that had requests before, then the oldest. */
function best(workloads: readonly WorkloadView[], view: SlotView): WorkloadView | undefined {
  if (workloads.length <= 1) return workloads[0];
  const rank = (workload: WorkloadView): readonly number[] => [
    isPassing(workload, view) ? 0 : 1,
    view.previous?.answering === workload.fact.id ? 0 : 1,
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
    applying.args.mends === undefined &&
    applying.args.workload.revision === fact.revision &&
    applying.args.workload.name === fact.name
  );
}

function reasonToGo(workload: WorkloadView, view: SlotView): Finding {
  return mismatch(workload, view) ?? { name: 'workloadSurplus', message: 'Another workload of the slot does its work' };
}

function go(workload: WorkloadView, because: Finding): Leaving {
  const drifted = because.name === 'workloadAltered';
  return { workload, because, failure: drifted ? { ...because, kind: 'drift', reason: 'WorkloadAltered' } : undefined };
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
