/** One slot: from its view to its decision and its actions. Pure, but for the ledger of what earlier slots of the same plan took. */
import { PROVIDER_KINDS } from '../../schema/provider-kinds.ts';
import { pullImageKey, pullModelKey, type Action } from './facts/actions.ts';
import { admissionOf, targetsOf } from './rules/admission.ts';
import { STABLE_MS } from './rules/backoff.ts';
import { castRoles, type Cast } from './rules/cast-roles.ts';
import { insufficientMemory, type Gate } from './rules/checks.ts';
import { deriveConditions } from './outcome/conditions.ts';
import { deriveState } from './rules/derive-state.ts';
import type { Decision, Finding } from './facts/facts.ts';
import type { Ledger } from './rules/ledger.ts';
import { listFindings } from './outcome/list-findings.ts';
import { planCrashNotes } from './steps/plan-crash-notes.ts';
import { planMends } from './steps/plan-mends.ts';
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
  ledger: Ledger,
): SlotPlan {
  const memoryGate = insufficientMemory(verdict);
  const unwanted = notWanted ?? memoryGate;
  const cast = castRoles(view, {
    unwanted,
    startable: gates.length === 0 && view.template !== undefined,
    ...ledger.room(view),
  });
  const wanted = unwanted === undefined;
  const start = cast.start ? planApply(view, ledger) : undefined;
  const pulls = wanted ? planPulls(view, gates) : NO_PULLS;
  const mends = planMends(view, cast, gates.length > 0);
  const stops = planStops(view, cast);
  const probes = planProbes(view, cast);
  const notes = planCrashNotes(view, unwanted);
  const startGate = start?.gate;
  const gate = memoryGate ?? startGate ?? gates[0];
  const starting = view.applying !== undefined || start?.action !== undefined;
  const busy = starting || mends.actions.length > 0 || cast.coming !== undefined || cast.leaving.length > 0 || view.stopping;
  const targets = targetsOf(cast.answering, view.previous?.targets);
  const decision: Decision = {
    ...aspectsOf(view, cast),
    state: deriveState({
      ...subjectFacts(view, cast),
      applying: starting,
      pulling: wanted && pulls.waitsFor.some((key) => view.running.has(key) || pulls.planned.has(key)),
    }),
    wanted,
    findings: listFindings(view, cast, unwanted, startGate === undefined ? gates : [startGate, ...gates]),
    conditions: deriveConditions({ view, cast, unwanted, gate, busy }),
    admission: admissionOf(view, cast, targets, { notWanted, memoryGate, gate: startGate ?? gates[0] }),
    targets,
    memory: verdict,
    memoryBytes: verdict?.bytes ?? view.template?.memoryBytes,
    nextAttemptAt: gates.find(({ until }) => until !== undefined)?.until,
    waitsFor: pulls.waitsFor,
    progress: pulls.waitsFor.map((key) => view.running.get(key)?.progress).find((progress) => progress !== undefined),
  };
  const starts = start?.action === undefined ? [] : [start.action];
  const wakes = [...stops.wakes, ...mends.wakes, ...probes.wakes, ...slotWakes(view, wanted, gates, cast)];
  return {
    decision,
    actions: [...stops.actions, ...pulls.actions, ...starts, ...mends.actions, ...probes.actions, ...notes],
    wakes,
    alone: !cast.start && cast.waitsFor === undefined && cast.leaving.length === 0,
    freshUntil: Math.min(probes.freshUntil ?? Number.POSITIVE_INFINITY, ...wakes),
  };
}

/** What of a decision can be read off the slot and its cast. */
function aspectsOf(view: SlotView, cast: Cast) {
  const { slot, spec, template, previous, workloads } = view;
  return {
    name: slot.name,
    generation: slot.generation,
    answering: cast.answering?.fact.id,
    draining: cast.leaving.filter(({ workload }) => workload.alive).map(({ workload }) => workload.fact.id),
    revision: template?.revision,
    capabilities: template?.capabilities ?? previous?.capabilities ?? PROVIDER_KINDS[spec.provider].serves,
    lastFailure: view.failures.findLast(({ kind }) => kind !== 'drift'),
    stable: isStable(view, cast),
    drift: workloads.flatMap((workload) => (workload.alive ? workload.drift : [])),
    trouble: (cast.coming ?? cast.answering ?? cast.pending)?.fact.trouble,
    replicas: subjectOf(view, cast)?.fact.replicas,
  };
}

function planApply(view: SlotView, ledger: Ledger): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = template.cluster === undefined ? ledger.takePort() : template.containerPort;
  if (port === undefined) {
    const message = 'Widen "SVC_PORT_RANGE": every port of it is taken';
    return { gate: { kind: 'waiting', name: 'portRangeUsedUp', message } };
  }
  ledger.takeMemory(template.memoryBytes);
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
  const begun = due ? actions.filter((_, index) => !view.running.has(waitsFor[index] ?? '')) : [];
  return { actions: begun, planned: new Set(due ? waitsFor : []), waitsFor };
}

function subjectFacts(view: SlotView, cast: Cast) {
  const { answering } = cast;
  const subject = isLeft(view, cast) ? undefined : subjectOf(view, cast);
  if (subject !== undefined) {
    return {
      workload: subject.fact.phase === 'created' ? ('created' as const) : ('running' as const),
      fetching: subject.fact.fetching !== undefined,
      passing: answering !== undefined,
      inFlight: subject.inFlight > 0,
      served: subject.used,
    };
  }
  const leaving = view.workloads.some(({ fact }) => fact.phase !== 'exited');
  const workload = leaving ? ('leaving' as const) : ('none' as const);
  return { workload, fetching: false, passing: false, inFlight: false, served: false };
}

/** The one that stands for the slot: it answers, or may soon. What runs comes before what does not yet: it may answer in the next pass. */
function subjectOf(view: SlotView, { answering, coming, leaving }: Cast): WorkloadView | undefined {
  if (answering !== undefined) return answering;
  const staying = view.workloads.filter((workload) => workload.alive && leaving.every((each) => each.workload !== workload));
  return staying.find(({ fact }) => fact.phase === 'running') ?? coming ?? staying[0];
}

/** Nothing answers, and what did is on its way out: to make room, or for a fault that a late probe may still take back. */
function isLeft(view: SlotView, cast: Cast): boolean {
  if (cast.leaving.some(({ because }) => because.name === 'roomNeeded')) return true;
  if (cast.leaving.length === 0 || subjectOf(view, cast)?.fact.phase === 'running') return false;
  return cast.leaving.some(({ workload }) => workload.alive && workload.fact.phase === 'running');
}

/** Both the answering and the absence of failures have to last: what is mended in place answers all the time. */
function isStable(view: SlotView, cast: Cast): boolean {
  const last = view.failures.at(-1);
  const probe = cast.answering?.known.probe;
  if (last === undefined || cast.coming !== undefined || cast.answering?.standing !== 'current') return false;
  return probe?.status === 'passing' && view.now - Math.max(probe.since, last.at) >= STABLE_MS;
}

function slotWakes(view: SlotView, wanted: boolean, gates: readonly Gate[], cast: Cast): readonly number[] {
  const { lastActiveAt, now } = view;
  const idleAt = wanted && lastActiveAt !== undefined ? lastActiveAt + view.spec.lifecycle.idleTimeoutMs : Number.POSITIVE_INFINITY;
  const gateAt = gates.flatMap(({ until }) => until ?? []);
  const startedAt = cast.coming?.known.startCountsFrom;
  const startBy = startedAt === undefined ? [] : [startedAt + view.spec.lifecycle.startTimeoutMs];
  return [...gateAt, ...startBy, ...(Number.isFinite(idleAt) && view.inFlight === 0 && view.waiting === 0 ? [idleAt] : [])].filter(
    (at) => at > now,
  );
}
