/** One slot: from its view, and what earlier slots of the same plan left of ports and memory, to its decision and its actions. Pure. */
import { PROVIDER_KINDS } from '../../schema/provider-kinds.ts';
import { pullImageKey, pullModelKey, type Action } from './facts/actions.ts';
import { admissionOf, targetsOf } from './rules/admission.ts';
import { STABLE_MS } from './rules/backoff.ts';
import { assignRoles, type Roles } from './rules/assign-roles.ts';
import { insufficientMemory, type Gate } from './rules/checks.ts';
import { deriveConditions } from './outcome/conditions.ts';
import { deriveState } from './rules/derive-state.ts';
import type { Decision, Finding } from './facts/facts.ts';
import { roomFor, type Allocation, type SlotMemory } from './rules/allocator.ts';
import { listFindings } from './outcome/list-findings.ts';
import { planCrashNotes } from './steps/plan-crash-notes.ts';
import { planInPlaceUpdates } from './steps/plan-in-place-updates.ts';
import { planProbes } from './steps/plan-probes.ts';
import { planStops } from './steps/plan-stops.ts';
import type { MemoryVerdict } from './rules/share-memory.ts';
import type { SlotView, WorkloadView } from './facts/view.ts';
import { workloadOf } from './facts/workload.ts';

export interface SlotPlan {
  readonly decision: Decision;
  readonly actions: readonly Action[];
  /** Unix milliseconds at which time alone changes something. */
  readonly wakes: readonly number[];
  /** Unix milliseconds. Until then time alone changes nothing in it: the earliest of its wakes, or earlier where a probe may come early. */
  readonly validUntil: number;
  /** The slot is at rest: nothing is to be done, and the plan does not depend on other slots. */
  readonly atRest: boolean;
}

/** Everything that the plan of one slot depends on, except what the slots before it left of ports and memory. */
export interface SlotQuestion {
  readonly view: SlotView;
  /** What prevents a workload from being started, the gravest first. */
  readonly gates: readonly Gate[];
  readonly notWanted: Finding | undefined;
  readonly verdict: MemoryVerdict | undefined;
  readonly memory: SlotMemory;
}

export function planSlot({ view, gates, notWanted, verdict, memory }: SlotQuestion, allocation: Allocation): SlotPlan {
  const memoryGate = insufficientMemory(verdict);
  const unwanted = notWanted ?? memoryGate;
  const roles = assignRoles(view, {
    unwanted,
    startable: gates.length === 0 && view.template !== undefined,
    ...roomFor(memory, allocation),
  });
  const wanted = unwanted === undefined;
  const start = roles.start ? planApply(view, allocation.freePort) : undefined;
  const pulls = wanted ? planPulls(view, gates) : NO_PULLS;
  const inPlace = planInPlaceUpdates(view, roles, gates.length > 0);
  const stops = planStops(view, roles);
  const probes = planProbes(view, roles);
  const notes = planCrashNotes(view, unwanted);
  const startGate = start?.gate;
  const gate = memoryGate ?? startGate ?? gates[0];
  const applyingNow = view.applying !== undefined || start?.action !== undefined;
  const busy = applyingNow || inPlace.actions.length > 0 || roles.starting !== undefined || roles.draining.length > 0 || view.stopping;
  const targets = targetsOf(roles.serving);
  const decision: Decision = {
    ...aspectsOf(view, roles),
    state: deriveState({
      ...subjectFacts(view, roles),
      applying: applyingNow,
      pulling: wanted && pulls.waitsFor.some((key) => view.pulls?.has(key) === true || pulls.planned.has(key)),
    }),
    wanted,
    findings: listFindings(view, roles, unwanted, startGate === undefined ? gates : [startGate, ...gates]),
    conditions: deriveConditions({ view, roles, unwanted, gate, busy }),
    admission: admissionOf(view, roles, targets, { notWanted, memoryGate, gate: startGate ?? gates[0] }),
    targets,
    memory: verdict,
    memoryBytes: verdict?.bytes ?? view.template?.memoryBytes,
    nextAttemptAt: gates.find(({ until }) => until !== undefined)?.until,
    waitsFor: pulls.waitsFor,
    progress: pulls.waitsFor.map((key) => view.pulls?.get(key)?.progress).find((progress) => progress !== undefined),
  };
  const starts = start?.action === undefined ? [] : [start.action];
  const wakes = [...stops.wakes, ...inPlace.wakes, ...probes.wakes, ...slotWakes(view, wanted, gates, roles)];
  const actions = [...stops.actions, ...pulls.actions, ...starts, ...inPlace.actions, ...probes.actions, ...notes];
  return {
    decision,
    actions,
    wakes,
    validUntil: Math.min(probes.validUntil ?? Number.POSITIVE_INFINITY, ...wakes),
    atRest: actions.length === 0 && gates.length === 0 && view.failures.length === 0 && isIndependent(roles),
  };
}

/** It neither waits for other slots nor takes anything from what they share. */
function isIndependent({ start, waitsFor, draining }: Roles): boolean {
  return !start && waitsFor === undefined && draining.length === 0;
}

/** What of a decision can be read off the slot and its roles. */
function aspectsOf(view: SlotView, roles: Roles) {
  const { slot, spec, template, lastCapabilities, workloads } = view;
  return {
    name: slot.name,
    generation: slot.generation,
    serving: roles.serving?.fact.id,
    draining: roles.draining.filter(({ workload }) => workload.alive).map(({ workload }) => workload.fact.id),
    revision: template?.revision,
    capabilities: template?.capabilities ?? lastCapabilities ?? PROVIDER_KINDS[spec.provider].serves,
    lastFailure: view.failures.findLast(({ kind }) => kind !== 'drift'),
    stable: isStable(view, roles),
    drift: workloads.flatMap((workload) => (workload.alive ? workload.drift : [])),
    waitingReason: (roles.starting ?? roles.serving ?? roles.unprobed)?.fact.waitingReason,
    replicas: subjectOf(view, roles)?.fact.replicas,
  };
}

function planApply(view: SlotView, freePort: number | undefined): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = template.cluster === undefined ? freePort : template.containerPort;
  if (port === undefined) {
    const message = 'Widen "SVC_PORT_RANGE": every port of it is taken';
    return { gate: { kind: 'waiting', name: 'portRangeUsedUp', message } };
  }
  const names = new Set(view.workloads.map(({ fact }) => fact.name));
  const workload = workloadOf(slot, template, port, names);
  const origin = { spec: view.spec, model: model.facts, memoryBytes: template.memoryBytes };
  const because =
    names.size === 0
      ? { name: 'workloadNotPresent', message: 'It is wanted, and nothing of it runs' }
      : { name: 'revisionOutdated', message: `Revision "${template.revision}" starts beside the one that serves` };
  return { action: { name: 'apply', slot: slot.name, because, args: { workload, origin } } };
}

interface Pulls {
  readonly actions: readonly Action[];
  readonly planned: ReadonlySet<string>;
  /** Keys of all pulls this slot needs, planned, under way or put off. */
  readonly waitsFor: readonly string[];
}

const NO_PULLS: Pulls = { actions: [], planned: new Set(), waitsFor: [] };

function planPulls(view: SlotView, gates: readonly Gate[]): Pulls {
  if (gates.length === 0) return NO_PULLS;
  const { image, spec, slot } = view;
  const actions = gates.flatMap((gate): Action[] => {
    if (gate.name === 'imageNotPresent' && image !== undefined) {
      return [{ name: 'pullImage', slot: slot.name, because: gate, args: { image } }];
    }
    return gate.name === 'modelNotPresent'
      ? [{ name: 'pullModel', slot: slot.name, because: gate, args: { model: spec.model.default } }]
      : [];
  });
  const waitsFor = actions.flatMap((action) => {
    if (action.name === 'pullImage') return pullImageKey(action.args.image);
    return action.name === 'pullModel' ? pullModelKey(action.args.model) : [];
  });
  const due = gates.every(({ kind }) => kind === 'pulling');
  const begun = due ? actions.filter((_, index) => view.pulls?.has(waitsFor[index] ?? '') !== true) : [];
  return { actions: begun, planned: new Set(due ? waitsFor : []), waitsFor };
}

function subjectFacts(view: SlotView, roles: Roles) {
  const { serving } = roles;
  const subject = isLeft(view, roles) ? undefined : subjectOf(view, roles);
  if (subject !== undefined) {
    return {
      workload: subject.fact.phase === 'created' ? ('created' as const) : ('running' as const),
      fetching: subject.fact.fetching !== undefined,
      passing: serving !== undefined,
      inFlight: subject.inFlight > 0,
      served: subject.used,
    };
  }
  const draining = view.workloads.some(({ fact }) => fact.phase !== 'exited');
  const workload = draining ? ('draining' as const) : ('none' as const);
  return { workload, fetching: false, passing: false, inFlight: false, served: false };
}

/** The one that stands for the slot: it answers, or may soon. What runs comes before what does not yet: it may answer in the next pass. */
function subjectOf(view: SlotView, { serving, starting, draining }: Roles): WorkloadView | undefined {
  if (serving !== undefined) return serving;
  const staying = view.workloads.filter((workload) => workload.alive && draining.every((each) => each.workload !== workload));
  return staying.find(({ fact }) => fact.phase === 'running') ?? starting ?? staying[0];
}

/** Nothing answers, and what did is on its way out: to make room, or for a fault that a late probe may still take back. */
function isLeft(view: SlotView, roles: Roles): boolean {
  if (roles.draining.some(({ because }) => because.name === 'roomNeeded')) return true;
  if (roles.draining.length === 0 || subjectOf(view, roles)?.fact.phase === 'running') return false;
  return roles.draining.some(({ workload }) => workload.alive && workload.fact.phase === 'running');
}

/** Both the serving and the absence of failures have to last: what is mended in place answers all the time. */
function isStable(view: SlotView, roles: Roles): boolean {
  const last = view.failures.at(-1);
  const probe = roles.serving?.known.probe;
  if (last === undefined || roles.starting !== undefined || roles.serving?.standing !== 'current') return false;
  return probe?.status === 'passing' && view.now - Math.max(probe.since, last.at) >= STABLE_MS;
}

function slotWakes(view: SlotView, wanted: boolean, gates: readonly Gate[], roles: Roles): readonly number[] {
  const { lastActiveAt, now } = view;
  const idleAt = wanted && lastActiveAt !== undefined ? lastActiveAt + view.spec.lifecycle.idleTimeoutMs : Number.POSITIVE_INFINITY;
  const gateAt = gates.flatMap(({ until }) => until ?? []);
  const startedAt = roles.starting?.known.startCountsFrom;
  const startBy = startedAt === undefined ? [] : [startedAt + view.spec.lifecycle.startTimeoutMs];
  return [...gateAt, ...startBy, ...(Number.isFinite(idleAt) && view.inFlight === 0 && view.waiting === 0 ? [idleAt] : [])].filter(
    (at) => at > now,
  );
}
