/** One slot: from its view to its decision and its actions. Pure, but for the allocator of what earlier slots of the same plan took. */
import { PROVIDER_KINDS } from '../../schema/provider-kinds.ts';
import { pullImageKey, pullModelKey, type Action } from './facts/actions.ts';
import { admissionOf, targetsOf } from './rules/admission.ts';
import { STABLE_MS } from './rules/backoff.ts';
import { assignRoles, type Roles } from './rules/assign-roles.ts';
import { insufficientMemory, type Gate } from './rules/checks.ts';
import { deriveConditions } from './outcome/conditions.ts';
import { deriveState } from './rules/derive-state.ts';
import type { Decision, Finding } from './facts/facts.ts';
import type { Allocator } from './rules/allocator.ts';
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
  /** Until then, planning it again answers the same while nothing else changes. */
  readonly freshUntil: number;
  /** No other slot has a say in it. */
  readonly alone: boolean;
}

export function planSlot(
  view: SlotView,
  gates: readonly Gate[],
  notWanted: Finding | undefined,
  verdict: MemoryVerdict | undefined,
  allocator: Allocator,
): SlotPlan {
  const memoryGate = insufficientMemory(verdict);
  const unwanted = notWanted ?? memoryGate;
  const roles = assignRoles(view, {
    unwanted,
    startable: gates.length === 0 && view.template !== undefined,
    ...allocator.room(view),
  });
  const wanted = unwanted === undefined;
  const start = roles.start ? planApply(view, allocator) : undefined;
  const pulls = wanted ? planPulls(view, gates) : NO_PULLS;
  const inPlace = planInPlaceUpdates(view, roles, gates.length > 0);
  const stops = planStops(view, roles);
  const probes = planProbes(view, roles);
  const notes = planCrashNotes(view, unwanted);
  const startGate = start?.gate;
  const gate = memoryGate ?? startGate ?? gates[0];
  const applyingNow = view.applying !== undefined || start?.action !== undefined;
  const busy = applyingNow || inPlace.actions.length > 0 || roles.starting !== undefined || roles.draining.length > 0 || view.stopping;
  const targets = targetsOf(roles.serving, view.previous?.targets);
  const decision: Decision = {
    ...aspectsOf(view, roles),
    state: deriveState({
      ...subjectFacts(view, roles),
      applying: applyingNow,
      pulling: wanted && pulls.waitsFor.some((key) => view.running.has(key) || pulls.planned.has(key)),
    }),
    wanted,
    findings: listFindings(view, roles, unwanted, startGate === undefined ? gates : [startGate, ...gates]),
    conditions: deriveConditions({ view, roles, unwanted, gate, busy }),
    admission: admissionOf(view, roles, targets, { notWanted, memoryGate, gate: startGate ?? gates[0] }),
    targets,
    memory: verdict,
    memoryBytes: verdict?.bytes ?? view.template?.memoryBytes,
    nextAttemptAt: gates.flatMap(untilOf)[0],
    waitsFor: pulls.waitsFor,
    progress: pulls.waitsFor.map((key) => view.running.get(key)?.progress).find((progress) => progress !== undefined),
  };
  const starts = start?.action === undefined ? [] : [start.action];
  const wakes = [...stops.wakes, ...inPlace.wakes, ...probes.wakes, ...slotWakes(view, wanted, gates, roles)];
  return {
    decision,
    actions: [...stops.actions, ...pulls.actions, ...starts, ...inPlace.actions, ...probes.actions, ...notes],
    wakes,
    alone: !roles.start && roles.waitsFor === undefined && roles.draining.length === 0,
    freshUntil: Math.min(probes.freshUntil ?? Number.POSITIVE_INFINITY, ...wakes),
  };
}

/** What of a decision can be read off the slot and its roles. */
function aspectsOf(view: SlotView, roles: Roles) {
  const { slot, spec, template, previous, workloads } = view;
  return {
    name: slot.name,
    generation: slot.generation,
    serving: roles.serving?.fact.id,
    draining: roles.draining.filter(({ workload }) => workload.alive).map(({ workload }) => workload.fact.id),
    revision: template?.revision,
    capabilities: template?.capabilities ?? previous?.capabilities ?? PROVIDER_KINDS[spec.provider].serves,
    lastFailure: view.failures.findLast(({ kind }) => kind !== 'drift'),
    stable: isStable(view, roles),
    drift: workloads.flatMap((workload) => (workload.alive ? workload.drift : [])),
    waitingReason: (roles.starting ?? roles.serving ?? roles.unprobed)?.fact.waitingReason,
    replicas: subjectOf(view, roles)?.fact.replicas,
  };
}

function planApply(view: SlotView, allocator: Allocator): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = template.cluster === undefined ? allocator.takePort() : template.containerPort;
  if (port === undefined) {
    const message = 'Widen "SVC_PORT_RANGE": every port of it is taken';
    return { gate: { kind: 'waiting', reason: 'PortRangeUsedUp', message } };
  }
  allocator.takeMemory(template.memoryBytes);
  const names = new Set(view.workloads.map(({ fact }) => fact.name));
  const workload = workloadOf(slot, template, port, names);
  const origin = { spec: view.spec, model: model.facts, memoryBytes: template.memoryBytes };
  const because: Finding =
    names.size === 0
      ? { reason: 'WorkloadNotPresent', message: 'It is wanted, and nothing of it runs' }
      : { reason: 'RevisionOutdated', message: `Revision "${template.revision}" starts beside the one that serves` };
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
    if (gate.kind !== 'pulling') return [];
    if (gate.what === 'model') return [{ name: 'pullModel', slot: slot.name, because: gate, args: { model: spec.model.default } }];
    return image === undefined ? [] : [{ name: 'pullImage', slot: slot.name, because: gate, args: { image } }];
  });
  const waitsFor = actions.flatMap((action) => {
    if (action.name === 'pullImage') return pullImageKey(action.args.image);
    return action.name === 'pullModel' ? pullModelKey(action.args.model) : [];
  });
  const due = gates.every(({ kind }) => kind === 'pulling');
  const begun = due ? actions.filter((_, index) => !view.running.has(waitsFor[index] ?? '')) : [];
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
  if (roles.draining.some(({ because }) => because.reason === 'RoomNeeded')) return true;
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

function untilOf(gate: Gate): number | readonly never[] {
  return gate.kind === 'waiting' ? (gate.until ?? []) : [];
}

function slotWakes(view: SlotView, wanted: boolean, gates: readonly Gate[], roles: Roles): readonly number[] {
  const { lastActiveAt, now } = view;
  const idleAt = wanted && lastActiveAt !== undefined ? lastActiveAt + view.spec.lifecycle.idleTimeoutMs : Number.POSITIVE_INFINITY;
  const gateAt = gates.flatMap(untilOf);
  const startedAt = roles.starting?.known.startCountsFrom;
  const startBy = startedAt === undefined ? [] : [startedAt + view.spec.lifecycle.startTimeoutMs];
  return [...gateAt, ...startBy, ...(Number.isFinite(idleAt) && view.inFlight === 0 && view.waiting === 0 ? [idleAt] : [])].filter(
    (at) => at > now,
  );
}
