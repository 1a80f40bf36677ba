/** The plan of one slot: roles for its workloads, then the actions, then the decision that describes them. Pure. */
import type { ModelFacts } from '../../providers/provider.ts';
import type { Finding } from '../../schema/words/failure.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import type { Backend } from '../../schema/slot/provider-kinds.ts';
import { servesOf } from '../../schema/slot/provider-kinds.ts';
import type { Action } from './facts/actions.ts';
import type { Decision } from './facts/facts.ts';
import type { SlotView } from './facts/view.ts';
import { isMemoryUnknown } from './facts/workload.ts';
import { deriveConditions } from './outcome/conditions.ts';
import { listFindings } from './outcome/list-findings.ts';
import { admissionOf, targetsOf } from './rules/admission.ts';
import { fitsHeld, roomFor, spillAside, type Allocation, type SlotMemory } from './rules/allocator.ts';
import { assignRoles, type Roles } from './rules/assign-roles.ts';
import { findUnrepairable, nextRepairAt } from './rules/repair.ts';
import { STABLE_MS } from './rules/backoff.ts';
import { computesWith } from './facts/choose-backend.ts';
import { deriveState, findSubject, stateFactsOf } from './rules/derive-state.ts';
import { insufficientMemory, type Gate } from './rules/gates.ts';
import { totalBytes, type MemoryVerdict } from './facts/memory-pools.ts';
import { watchedUntil, whyTrialEnds, whyWatchFails } from './rules/evaluation.ts';
import { abandonedAt, loadsFor, whyAsleep } from './rules/wanted.ts';
import { planCrashNotes, planInPlaceUpdates } from './steps/plan-in-place-updates.ts';
import { planEvaluation } from './steps/plan-evaluation.ts';
import { planProbes } from './steps/plan-probes.ts';
import { findNextStart } from './steps/plan-read-ahead.ts';
import { NO_PULLS, planPulls, planStart } from './steps/plan-start.ts';
import { planSleep } from './steps/plan-sleep.ts';
import { NOTHING_DUE, planStops } from './steps/plan-stops.ts';

export interface SlotPlan {
  readonly decision: Decision;
  readonly actions: readonly Action[];
  /** When the passage of time alone changes the plan, in monotonic milliseconds. */
  readonly wakes: readonly number[];
  /** Monotonic milliseconds until which time alone does not change the plan: its earliest wake or possible probe. */
  readonly validUntil: number;
  /** The slot is at rest: there is nothing to do, and the plan does not depend on other slots. */
  readonly atRest: boolean;
}

/** Everything that the plan of one slot depends on, except the allocation. */
export interface SlotQuestion {
  readonly view: SlotView;
  /** What prevents a start, the most serious first. */
  readonly gates: readonly Gate[];
  readonly notWanted: Finding | undefined;
  /** Set where the slot runs ahead of requests only. */
  readonly ahead: Finding | undefined;
  /** Undefined where the slot claims no memory. */
  readonly verdict: MemoryVerdict | undefined;
  readonly memory: SlotMemory;
}

export function planSlot({ view, gates, notWanted, ahead, verdict, memory }: SlotQuestion, allocation: Allocation): SlotPlan {
  const memoryGate = insufficientMemory(verdict);
  const unwanted = notWanted ?? memoryGate;
  const wanted = unwanted === undefined;
  const warm = wanted && ahead !== undefined ? view.warm : undefined;
  const startable = gates.length === 0 && view.template !== undefined && whyWatchFails(view) === undefined;
  const rests = restOf(view, memory, allocation);
  const roles = assignRoles(view, { unwanted, startable, ...rests, ...roomFor(memory, allocation) });

  const stops = planStops(view, roles);
  const pulls = wanted ? planPulls(view, gates) : NO_PULLS;
  const start = roles.start ? planStart(view, allocation, { ...memory, warm }) : {};
  const updates = planInPlaceUpdates(view, roles, gates.length > 0);
  const sleep = planSleep(view, roles, rests.toWake);
  // A server that falls asleep or wakes would not answer.
  const probes = sleep.actions.length > 0 ? NOTHING_DUE : planProbes(view, roles);
  const causes = causesOf(view, { notWanted, unwanted, serving: roles.serving }, verdict);
  const ends = whyTrialEnds(view, { ...roles, notWanted, gates: [memoryGate, ...gates] });

  const gate = start.gate ?? gates[0];
  const applying = view.applying !== undefined || start.action !== undefined;
  const busy = applying || updates.actions.length > 0 || roles.starting !== undefined || roles.draining.length > 0 || view.stopping;
  const targets = targetsOf(roles.serving);
  const stuck = ends !== undefined ? undefined : notWanted === undefined && memoryGate?.kind === 'memory' ? memoryGate : gate;
  const nextStart = findNextStart(view, { roles, notWanted, memoryGate, startable, mayWait: verdict?.mayWait === true });
  const wakes = [...stops.wakes, ...updates.wakes, ...probes.wakes, ...sleep.wakes, ...wakesOf(view, wanted, gates, roles)];
  const actions = [
    ...stops.actions,
    ...pulls.actions,
    ...(start.action === undefined ? [] : [start.action]),
    ...updates.actions,
    ...probes.actions,
    ...sleep.actions,
    ...planCrashNotes(view, unwanted),
    ...planEvaluation(view, roles, ends),
  ].map((action) => attribute(action, causes, unwanted));
  return {
    decision: {
      ...describe(view, roles, causes),
      state: deriveState({ ...stateFactsOf(view, roles), applying, pulling: pulls.pulling }),
      wanted,
      ...(warm === undefined ? {} : { ahead: { lastActiveAt: view.lastActiveAt } }),
      findings: [
        ...(warm === undefined ? [] : [warm]),
        ...listFindings(view, roles, unwanted, start.gate === undefined ? gates : [start.gate, ...gates]),
      ],
      conditions: deriveConditions({ view, roles, unwanted, gate: memoryGate ?? gate, busy, unrepairable: findUnrepairable(view, roles) }),
      admission: admissionOf(view, roles, targets, stuck),
      targets,
      memory: verdict,
      memoryBytes: isMemoryUnknown(view.template) ? undefined : (verdict?.bytes ?? (view.template && totalBytes(memory.needed))),
      nextAttemptAt: wanted && !gates.some(({ kind }) => kind === 'stalled') ? gates.flatMap(untilOf)[0] : undefined,
      waitsFor: pulls.waitsFor,
      progress: pulls.progress,
      ...reportsOf(view),
      ...(nextStart === undefined ? {} : { nextStart }),
    },
    actions,
    wakes,
    validUntil: Math.min(probes.validUntil ?? Number.POSITIVE_INFINITY, ...wakes),
    atRest: actions.length === 0 && gates.length === 0 && hasNoHistory(view) && isIndependent(roles),
  };
}

/** What has become of prompts and of files that were read ahead. */
function reportsOf({ attempts }: SlotView): Pick<Decision, 'prompts' | 'readAhead'> {
  const { prompts, readAhead } = attempts ?? {};
  return { ...(prompts === undefined ? {} : { prompts }), ...(readAhead === undefined ? {} : { readAhead }) };
}

type Causes = Pick<Decision, 'loadsFor' | 'gaveWayTo'>;

/** Whose request loads the slot, or has taken its memory. */
function causesOf(
  view: SlotView,
  { notWanted, unwanted, serving }: Pick<SlotQuestion, 'notWanted'> & Pick<Roles, 'serving'> & { readonly unwanted: Finding | undefined },
  verdict: MemoryVerdict | undefined,
): Causes {
  const caller = notWanted === undefined && serving === undefined ? loadsFor(view) : undefined;
  const isDisplaced = unwanted?.reason === 'GaveWay' || unwanted?.reason === 'InsufficientMemory';
  const gaveWayTo = verdict?.givesWayTo ?? (isDisplaced ? view.lastGaveWayTo : undefined);
  return { ...(caller === undefined ? {} : { loadsFor: caller }), ...(gaveWayTo === undefined ? {} : { gaveWayTo }) };
}

function attribute(action: Action, { loadsFor: caller, gaveWayTo }: Causes, unwanted: Finding | undefined): Action {
  const isLoad = action.name === 'wake' || (action.name === 'apply' && action.args.updatesInPlace === undefined);
  const isEviction = action.name === 'stop' && action.because === unwanted;
  const causedBy = isLoad ? caller : isEviction ? gaveWayTo?.caller : undefined;
  return causedBy === undefined ? action : { ...action, causedBy };
}

/**
 * The plan of a slot at rest after memory was shared out in another order: what a slot gets decides about its plan, and
 * not who comes before it. Returns `plan` itself where the verdict is the same; undefined where the slot has to be
 * planned again.
 */
export function withVerdict(plan: SlotPlan, verdict: MemoryVerdict | undefined): SlotPlan | undefined {
  const before = plan.decision.memory;
  if (before === verdict) return plan;
  if (before?.admitted !== true || verdict?.admitted !== true) return undefined;
  if (!isSameValue(before.placement, verdict.placement)) return undefined;
  return isSameValue(before, verdict) ? plan : { ...plan, decision: { ...plan.decision, memory: verdict } };
}

/** No failure, repair or silence that becomes less important as time passes. */
function hasNoHistory({ failures, repairs, workloads }: SlotView): boolean {
  return failures.length === 0 && repairs === undefined && workloads.every(({ known }) => known.probe?.status !== 'silent');
}

/** The slot neither waits for others nor takes anything from what they share. */
const isIndependent = ({ start, waitsFor, draining }: Roles): boolean => !start && waitsFor === undefined && draining.length === 0;

/** During a swap the old workload serves its model; the present one keeps its model if the files become unusable. */
function servedModelOf({ model, lastServedModel }: SlotView, { serving }: Roles): ModelFacts | undefined {
  const wanted = model?.kind === 'present' ? model.facts : undefined;
  if (serving === undefined) return wanted;
  return serving.standing === 'current' ? (wanted ?? lastServedModel) : (lastServedModel ?? wanted);
}

/** The part of a decision that follows from the slot and its roles alone. */
function restOf(view: SlotView, memory: SlotMemory, allocation: Allocation) {
  const toWake = spillAside(memory.toWake, allocation);
  return { asleep: whyAsleep(view) !== undefined, fitsAwake: fitsHeld(toWake, allocation), toWake };
}

function describe(view: SlotView, roles: Roles, causes: Causes) {
  const { slot, spec, template, lastCapabilities, workloads } = view;
  return {
    name: slot.name,
    generation: slot.generation,
    serving: roles.serving?.fact.id,
    draining: roles.draining.filter(({ workload }) => workload.alive).map(({ workload }) => workload.fact.id),
    revision: template?.revision,
    backend: servedBackend(view, roles),
    backendChoice: view.backendChoice,
    notes: template?.notes,
    fallback: spec.fallback,
    servedModel: servedModelOf(view, roles),
    capabilities: findSubject(view, roles)?.fact.serves ?? template?.capabilities ?? lastCapabilities ?? servesOf(spec),
    voices: template?.voices,
    lastFailure: view.failures.at(-1),
    stable: isStable(view, roles),
    drift: workloads.flatMap((workload) => (workload.alive ? workload.drift : [])),
    waitingReason: (roles.starting ?? roles.serving ?? roles.unprobed)?.fact.waitingReason,
    replicas: findSubject(view, roles)?.fact.replicas,
    ...causes,
  };
}

/** What really computes: a workload from before an edit keeps what it was started with. */
function servedBackend({ spec, backendMissing }: SlotView, { serving }: Roles): Backend | undefined {
  if (serving?.standing === 'outdated') return serving.known.origin && computesWith(serving.known.origin.spec);
  return serving === undefined || backendMissing !== undefined ? undefined : computesWith(spec);
}

/** The slot must have been ready without failure or repair for long enough: repair in place keeps it ready. */
function isStable({ failures, repairs, now }: SlotView, { serving, starting }: Roles): boolean {
  const last = Math.max(failures.at(-1)?.at ?? Number.NEGATIVE_INFINITY, repairs?.lastAt ?? Number.NEGATIVE_INFINITY);
  const probe = serving?.known.probe;
  if (last === Number.NEGATIVE_INFINITY || starting !== undefined || serving?.standing !== 'current') return false;
  return probe?.status === 'passing' && now - Math.max(probe.since, last) >= STABLE_MS;
}

/** Ends of the idle time, of a load without requests, of back-offs, of the pause before a repair, of the start time. */
function wakesOf(view: SlotView, wanted: boolean, gates: readonly Gate[], { starting }: Roles): readonly number[] {
  const { lastActiveAt, inFlight, waiting, now } = view;
  const { idleTimeoutMs, startTimeoutMs } = view.spec.lifecycle;
  const mayIdle = wanted && lastActiveAt !== undefined && inFlight === 0 && waiting === 0;
  const startedAt = starting?.known.startCountsFrom;
  return [
    ...gates.flatMap(untilOf),
    ...(startedAt === undefined ? [] : [startedAt + startTimeoutMs]),
    ...(mayIdle ? [lastActiveAt + idleTimeoutMs] : []),
    ...(view.workloads.some(({ alive, standing }) => alive && standing === 'altered') ? [nextRepairAt(view) ?? now] : []),
    abandonedAt(view) ?? now,
    watchedUntil(view) ?? now,
  ].filter((at) => at > now && Number.isFinite(at));
}

const untilOf = (gate: Gate): number | readonly never[] => (gate.kind === 'waiting' ? (gate.until ?? []) : []);
