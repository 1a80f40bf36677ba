/** One slot: from its view to its decision and its actions. Pure, but for the ledger of what earlier slots of the same plan took. */
import { PROVIDER_KINDS } from '../../spec/provider-kinds.ts';
import type { Admission, Target } from '../board.ts';
import { pullImageKey, pullModelKey, type Action } from './actions.ts';
import { STABLE_MS } from './backoff.ts';
import { castRoles, type Cast } from './cast-roles.ts';
import { insufficientMemory, type Gate } from './checks.ts';
import { deriveConditions } from './conditions.ts';
import { deriveState } from './derive-state.ts';
import type { Decision, Finding } from './facts.ts';
import type { Ledger } from './ledger.ts';
import { planProbes } from './plan-probes.ts';
import { planStops } from './plan-stops.ts';
import type { MemoryVerdict } from './share-memory.ts';
import type { SlotView, WorkloadView } from './view.ts';
import { workloadOf } from './workload.ts';

export interface SlotPlan {
  readonly decision: Decision;
  readonly actions: readonly Action[];
  /** Unix milliseconds at which time alone changes something. */
  readonly wakes: readonly number[];
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
  const stops = planStops(view, cast);
  const probes = planProbes(view, cast);
  const startGate = start?.gate;
  const gate = memoryGate ?? startGate ?? gates[0];
  const starting = view.applying !== undefined || start?.action !== undefined;
  const facts = { view, cast, unwanted, gate, busy: starting || cast.coming !== undefined || cast.leaving.length > 0 || view.stopping };
  const targets = targetsOf(cast.answering);
  const failed = view.failures.findLast(({ kind }) => kind !== 'drift');
  const decision: Decision = {
    name: view.slot.name,
    generation: view.slot.generation,
    state: deriveState({
      ...subjectFacts(view, cast),
      applying: starting,
      pulling: wanted && pulls.waitsFor.some((key) => view.running.has(key) || pulls.planned.has(key)),
    }),
    wanted,
    findings: findingsOf(view, cast, unwanted, startGate === undefined ? gates : [startGate, ...gates]),
    conditions: deriveConditions(facts),
    admission: admissionOf(view, cast, notWanted, memoryGate, startGate ?? gates[0]),
    targets,
    answering: cast.answering?.fact.id,
    draining: cast.leaving.filter(({ workload }) => workload.alive).map(({ workload }) => workload.fact.id),
    memory: verdict,
    memoryBytes: verdict?.bytes ?? view.template?.memoryBytes,
    revision: view.template?.revision,
    capabilities: view.template?.capabilities ?? view.previous?.capabilities ?? PROVIDER_KINDS[view.spec.provider].serves,
    nextAttemptAt: gates.find(({ until }) => until !== undefined)?.until,
    lastFailure: failed,
    waitsFor: pulls.waitsFor,
    progress: pulls.waitsFor.map((key) => view.running.get(key)?.progress).find((progress) => progress !== undefined),
    stable: isStable(view, cast),
    drift: view.workloads.flatMap((workload) => (workload.alive ? workload.drift : [])),
  };
  const actions = [...stops.actions, ...pulls.actions, ...(start?.action === undefined ? [] : [start.action]), ...probes.actions];
  return { decision, actions, wakes: [...stops.wakes, ...probes.wakes, ...slotWakes(view, wanted, gates, cast)] };
}

function planApply(view: SlotView, ledger: Ledger): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = ledger.takePort();
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
  const subject = answering ?? cast.coming ?? cast.pending ?? appearing(view, cast);
  if (subject !== undefined) {
    return {
      workload: subject.fact.phase === 'created' ? ('created' as const) : ('running' as const),
      passing: answering !== undefined,
      inFlight: subject.inFlight > 0,
      served: subject.used,
    };
  }
  const leaving = view.workloads.some(({ fact }) => fact.phase !== 'exited');
  return { workload: leaving ? ('leaving' as const) : ('none' as const), passing: false, inFlight: false, served: false };
}

/** Its start has not been answered yet, and it is neither wanted nor leaving. */
function appearing(view: SlotView, cast: Cast): WorkloadView | undefined {
  return view.workloads.find((workload) => workload.alive && cast.leaving.every((leaving) => leaving.workload !== workload));
}

function targetsOf(answering: WorkloadView | undefined): readonly Target[] {
  return answering?.fact.endpoints.map((endpoint) => ({ workload: answering.fact.id, endpoint })) ?? [];
}

function admissionOf(
  view: SlotView,
  cast: Cast,
  notWanted: Finding | undefined,
  memoryGate: Gate | undefined,
  gate: Gate | undefined,
): Admission {
  if (targetsOf(cast.answering).length > 0) return { kind: 'open' };
  const name = view.slot.name;
  if (!view.spec.enabled) {
    return { kind: 'refuse', code: 'slot.disabled', message: `Enable slot "${name}" first ("svcctl slot load ${name}"): it is disabled` };
  }
  if (notWanted === undefined && memoryGate?.kind === 'memory') {
    const message = `Free memory or lower what slot "${name}" needs: ${memoryGate.message}`;
    return { kind: 'refuse', code: 'slot.insufficient_memory', message };
  }
  if (gate?.kind !== 'stalled' || cast.coming !== undefined || cast.pending !== undefined) return { kind: 'park' };
  return { kind: 'refuse', code: 'slot.stalled', message: `Mend slot "${name}" first: ${gate.message}` };
}

function findingsOf(view: SlotView, cast: Cast, unwanted: Finding | undefined, gates: readonly Gate[]): readonly Finding[] {
  const { answering, coming, waitsFor } = cast;
  if (isAtRest(view, cast) && unwanted === undefined && gates.length === 0) return NO_FINDINGS;
  const own = unwanted === undefined ? [] : [unwanted];
  const outdated: Finding[] =
    answering?.standing === 'outdated'
      ? [
          {
            name: 'revisionOutdated',
            message: `Revision "${answering.fact.revision}" serves until "${view.template?.revision ?? ''}" does`,
          },
        ]
      : [];
  const probe = coming?.known.probe;
  const warming: Finding[] =
    coming === undefined
      ? []
      : [
          {
            name: 'probeNotPassed',
            message: probe === undefined ? 'It has just been started' : `It does not answer yet: ${probe.message}`,
          },
        ];
  const altered: Finding[] = view.workloads
    .filter((workload) => workload.alive && workload.standing === 'altered' && view.spec.lifecycle.drift !== 'ignore')
    .map(({ drift }) => ({ name: 'workloadAltered', message: `It was altered from outside: ${drift.join('; ')}` }));
  const all = [
    ...own,
    ...cast.leaving.map(({ because }) => because),
    ...gates,
    ...outdated,
    ...warming,
    ...altered,
    ...(waitsFor ? [waitsFor] : []),
  ];
  return all.filter((finding, index) => all.findIndex(({ name }) => name === finding.name) === index);
}

const NO_FINDINGS: readonly Finding[] = [];

function isAtRest({ workloads }: SlotView, { leaving, coming, waitsFor }: Cast): boolean {
  return (
    leaving.length === 0 && coming === undefined && waitsFor === undefined && workloads.every(({ standing }) => standing === 'current')
  );
}

function isStable(view: SlotView, cast: Cast): boolean {
  const probe = cast.answering?.known.probe;
  return view.failures.length > 0 && cast.coming === undefined && cast.answering?.standing === 'current' && stableFor(probe, view.now);
}

function stableFor(probe: { readonly status: string; readonly since: number } | undefined, now: number): boolean {
  return probe?.status === 'passing' && now - probe.since >= STABLE_MS;
}

function slotWakes(view: SlotView, wanted: boolean, gates: readonly Gate[], cast: Cast): readonly number[] {
  const { lastActiveAt, now } = view;
  const idleAt = wanted && lastActiveAt !== undefined ? lastActiveAt + view.spec.lifecycle.idleTimeoutMs : Number.POSITIVE_INFINITY;
  const gateAt = gates.flatMap(({ until }) => until ?? []);
  const startBy = cast.coming === undefined ? [] : [cast.coming.known.seenAt + view.spec.lifecycle.startTimeoutMs];
  return [...gateAt, ...startBy, ...(Number.isFinite(idleAt) && view.inFlight === 0 && view.waiting === 0 ? [idleAt] : [])].filter(
    (at) => at > now,
  );
}
