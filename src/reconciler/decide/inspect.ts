/**
 * Checks a plan against the facts, independently of the planner: what must hold for any plan, whatever the rules are.
 * What a plan breaks a rule for is not executed. Shares no code with the planner except for the facts, the templates
 * and the table of moves, and takes nothing for true that the plan claims. Pure.
 */
import type { WorkloadId } from '../../schema/words/names.ts';
import type { DesiredSlot, ObservedWorkload, Workload } from '../ports.ts';
import { keyOfAction, type Action } from './facts/actions.ts';
import type { Decision, Desired, Observed, Plan, Case, Objection } from './facts/facts.ts';
import { lookUpModels } from './facts/companions.ts';
import { imageOf, knownOptions, needsImage, optionsOf } from './facts/gather.ts';
import { findOverdrafts, isNeeded } from './inspect-memory.ts';
import { keptTemplate } from './facts/drift.ts';
import { mayMove } from './rules/moves.ts';

/** What is wrong with the plan, a sentence for each problem; empty where it may be executed. */
export function inspect(plan: Plan, desired: Desired, observed: Observed, now: number): readonly Objection[] {
  const workloads = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
  const bySlot = Map.groupBy(workloads, ({ slot }) => slot);
  const byId = new Map(workloads.map((workload) => [workload.id, workload]));
  const facts: Case = { plan, desired, observed, now, byId, bySlot, templateOf: templatesOf(desired, observed, bySlot) };
  return [
    ...unreachableTouched(plan, observed),
    ...keysTwice(plan, observed),
    ...portsTwice(plan, observed, workloads),
    ...plan.actions.flatMap((action) => inspectAction(action, facts).map((message) => ({ slot: action.slot, message }))),
    ...findOverdrafts(facts),
    ...[...plan.decisions.values()].flatMap((decision) =>
      inspectDecision(decision, facts).map((message) => ({ slot: decision.name, message })),
    ),
  ];
}

function templatesOf(desired: Desired, observed: Observed, bySlot: Case['bySlot']): Case['templateOf'] {
  return (slot) => {
    const { model, companions } = modelsOf(slot, observed);
    const isImageNeeded = needsImage(observed.traits, desired.providers[slot.spec.provider]);
    const image = isImageNeeded ? imageOf(slot.spec, desired.images) : undefined;
    if (model?.kind !== 'present' || (image === undefined && isImageNeeded)) return undefined;
    try {
      const options = knownOptions(optionsOf(slot.spec, image, observed.runtime));
      return keptTemplate(desired.templateOf(slot, model.facts, image, { options, companions }), slot, bySlot.get(slot.name) ?? []);
    } catch {
      return undefined;
    }
  };
}

const modelsOf = ({ spec }: DesiredSlot, { models }: Observed) => lookUpModels(spec, models.get(spec.model.default), models);

function inspectAction(action: Action, facts: Case): readonly string[] {
  switch (action.name) {
    case 'apply': {
      const { workload, updatesInPlace } = action.args;
      const misled = workload.slot === action.slot ? [] : [`Acts on slot "${workload.slot}" in the name of slot "${action.slot}"`];
      const more =
        updatesInPlace === undefined ? inspectStart(workload, facts) : inspectInPlaceUpdate(workload, updatesInPlace.workload, facts);
      return [...misled, ...inspectWanted(workload, facts), ...more];
    }
    case 'stop':
      return inspectStop(action, facts);
    case 'sleep':
    case 'wake':
      return inspectSleep(action, facts);
    case 'evaluate':
      return inspectEvaluation(action, facts);
    case 'settle':
    case 'countRequests':
    case 'probe':
    case 'noteCrash':
    case 'pullImage':
    case 'pullModel':
    case 'cancelPull':
      return [];
    default:
      return action satisfies never;
  }
}

function inspectWanted(workload: Workload, { desired, observed, templateOf }: Case): readonly string[] {
  const name = workload.slot;
  const slot = desired.slots.get(name);
  const images = observed.runtime.kind === 'reachable' ? observed.runtime.facts.images : [];
  const image = workload.image?.reference;
  const found: string[] = [];
  const pods = observed.traits.network === 'pods';
  if (slot?.spec.enabled !== true || (pods && slot.spec.cluster.replicas === 0))
    found.push(`Starts a workload of slot "${name}", which is not wanted`);
  if (pods && workload.cluster?.replicas !== slot?.spec.cluster.replicas)
    found.push(`Starts slot "${name}" with another number of replicas`);
  if (slot !== undefined && modelsOf(slot, observed).model?.kind !== 'present') found.push(`Starts slot "${name}" without its model`);
  if (image !== undefined && !images.some((fact) => fact.reference === image && fact.present))
    found.push(`Starts slot "${name}" without its image`);
  const revision = slot === undefined ? undefined : templateOf(slot)?.revision;
  if (revision !== undefined && revision !== workload.revision)
    found.push(`Starts revision "${workload.revision}" of slot "${name}", which asks for "${revision}"`);
  return found;
}

/** Beside a new workload there may be one that answers, and no other. */
function inspectStart(workload: Workload, { observed, bySlot }: Case): readonly string[] {
  const name = workload.slot;
  const others = bySlot.get(name) ?? [];
  const found: string[] = [];
  if (others.length > 1 || others.some((other) => !hasAnswered(other, observed)))
    found.push(`Starts a workload of slot "${name}" beside one that does not answer`);
  if (others.some((other) => other.name === workload.name))
    found.push(`Starts a workload with the name "${workload.name}", which is taken`);
  return found;
}

function hasAnswered({ id, phase }: ObservedWorkload, { histories }: Observed): boolean {
  return phase === 'running' && histories.get(id)?.probe?.passed === true;
}

/** Only an existing workload of the wanted revision may be updated; another one would run beside the kept one. */
function inspectInPlaceUpdate(workload: Workload, id: WorkloadId, { observed, byId }: Case): readonly string[] {
  const fact = byId.get(id);
  const found: string[] = [];
  if (observed.traits.inPlace === undefined) found.push(`Updates "${id}" in place, which this runtime cannot do`);
  if (fact?.phase !== 'created' && fact?.phase !== 'running') return [...found, `Updates "${id}", which does not exist or is ending`];
  if (observed.running.has(`stop:${id}`)) found.push(`Updates "${id}", which is being stopped`);
  if (fact.name !== workload.name || fact.slot !== workload.slot || fact.revision !== workload.revision)
    found.push(`Updates "${id}" to another workload`);
  return found;
}

/** Only a server without requests sleeps, of a slot that is idle; only one that sleeps is woken. */
function inspectSleep({ name, args, slot }: Extract<Action, { name: 'sleep' | 'wake' }>, facts: Case): readonly string[] {
  const { observed, desired, plan, now } = facts;
  const { workload: id } = args;
  const spec = desired.slots.get(slot)?.spec;
  const fact = facts.byId.get(id);
  const inFlight = observed.activity.get(id)?.inFlight ?? 0;
  const isTarget = [...plan.decisions.values()].some(({ targets }) => targets.some(({ workload }) => workload === id));
  const isNeeded = observed.warm?.has(slot) === true || (observed.demand.get(slot)?.waiting ?? 0) > 0;
  const idleMs = now - (observed.lastActive.get(slot) ?? Number.NEGATIVE_INFINITY);
  const wrong: Readonly<Record<string, boolean>> = {
    'which does not run for it': fact?.phase !== 'running' || fact.slot !== slot || observed.running.has(`stop:${id}`),
    'which has no server that can sleep': spec === undefined || desired.providers[spec.provider]?.sleep === undefined,
    'which is so already': (observed.histories.get(id)?.probe?.status === 'asleep') !== (name === 'wake'),
    'which gets requests': isTarget,
    'which has requests in flight': name === 'sleep' && inFlight > 0,
    'which is needed': name === 'sleep' && (isNeeded || idleMs < (spec?.lifecycle.idleTimeoutMs ?? 0)),
  };
  return Object.entries(wrong).flatMap(([what, is]) => (is ? [`The action "${name}" on "${id}" of slot "${slot}", ${what}`] : []));
}

/** Only a server of the slot that answers, and that is not leaving, is judged, and only where cases say so. */
function inspectEvaluation(
  { args, slot }: Extract<Action, { name: 'evaluate' }>,
  { desired, observed, byId, plan }: Case,
): readonly string[] {
  const { workload: id } = args;
  const fact = byId.get(id);
  const wrong: Readonly<Record<string, boolean>> = {
    'which does not run for it': fact?.phase !== 'running' || fact.slot !== slot || observed.running.has(`stop:${id}`),
    'whose model is not on trial': desired.slots.get(slot)?.rollout?.isOnTrial !== true,
    'which has not passed a probe': observed.histories.get(id)?.probe?.passed !== true,
    'which is leaving': plan.decisions.get(slot)?.draining.includes(id) === true,
  };
  return Object.entries(wrong).flatMap(([what, is]) => (is ? [`Evaluates "${id}" of slot "${slot}", ${what}`] : []));
}

/** So many probes in a row without any answer, and a server will not finish a request either. */
const SILENT_AFTER = 3;
/** As long as this, a count of requests says what is in flight now. */
const COUNT_MS = 1000;

function inspectStop({ args, slot }: Extract<Action, { name: 'stop' }>, facts: Case): readonly string[] {
  const { observed, desired, plan, now } = facts;
  const workload = facts.byId.get(args.workload);
  if (workload === undefined) return [`Stops "${args.workload}", which does not exist`];
  const found: string[] = [];
  if (workload.slot !== slot) found.push(`Acts on slot "${workload.slot}" in the name of slot "${slot}"`);
  const targets = [...plan.decisions.values()].flatMap((decision) => decision.targets);
  if (targets.some((target) => target.workload === args.workload))
    found.push(`Stops "${args.workload}" of slot "${workload.slot}", which gets requests`);
  if (isNeeded(workload, facts)) found.push(`Stops "${args.workload}" of slot "${workload.slot}", which is wanted, current and passing`);
  const inFlight = observed.activity.get(args.workload)?.inFlight ?? 0;
  const drainMs = desired.slots.get(workload.slot)?.spec.lifecycle.drainTimeoutMs ?? 30_000;
  const { drainingSince: since, probe } = observed.histories.get(args.workload) ?? {};
  const silent = probe?.passed === true && probe.consecutiveSilences >= SILENT_AFTER;
  const inTime = workload.phase !== 'exited' && !silent && (since === undefined ? drainMs > 0 : now - since < drainMs);
  const { count, at = 0 } = observed.histories.get(args.workload)?.counted ?? {};
  if (count !== undefined && count > 0 && now - at < COUNT_MS && inTime && desired.slots.has(workload.slot) && probe?.status === 'passing')
    found.push(`Stops "${args.workload}" with ${count} requests of other clients before its drain time is over`);
  if (inFlight > 0 && inTime) found.push(`Stops "${args.workload}" with ${inFlight} requests in flight before its drain time is over`);
  return found;
}

function unreachableTouched(plan: Plan, observed: Observed): readonly Objection[] {
  if (observed.runtime.kind !== 'unreachable' || plan.actions.length === 0) return [];
  return [{ slot: undefined, message: 'Acts while the runtime cannot be reached' }];
}

function keysTwice(plan: Plan, observed: Observed): readonly Objection[] {
  const seen = new Set(observed.running.keys());
  return plan.actions.flatMap((action) => {
    const key = keyOfAction(action);
    if (seen.has(key)) return [{ slot: action.slot, message: `Starts "${key}" twice` }];
    seen.add(key);
    return [];
  });
}

function portsTwice(plan: Plan, observed: Observed, workloads: readonly ObservedWorkload[]): readonly Objection[] {
  if (observed.traits.network === 'pods') return [];
  const taken = new Set([...observed.takenPorts, ...workloads.flatMap(({ container }) => container.port?.host ?? [])]);
  for (const { action } of observed.running.values()) if (action.name === 'apply') taken.add(action.args.workload.port.host);
  return plan.actions.flatMap((action) => {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) return [];
    const { host } = action.args.workload.port;
    if (taken.has(host)) return [{ slot: action.slot, message: `Gives port ${host} to slot "${action.slot}", which is taken` }];
    taken.add(host);
    return [];
  });
}

/** Its last verdict was that its model gets no requests. */
function isRejected({ revision }: ObservedWorkload, slot: DesiredSlot | undefined): boolean {
  const { accepted, verdict, rolledBack } = slot?.rollout ?? {};
  if (accepted === undefined || accepted.revision === revision) return false;
  return [rolledBack?.verdict, verdict].some((each) => each?.revision === revision && each.outcome !== 'passed');
}

function inspectDecision(decision: Decision, { desired, observed, byId }: Case): readonly string[] {
  const { name, state, targets, admission, draining } = decision;
  const found: string[] = [];
  const from = observed.published.get(name)?.decision.state;
  if (from !== undefined && !mayMove(from, state))
    found.push(`Moves slot "${name}" from "${from}" to "${state}", which the table of moves does not allow`);
  if (observed.runtime.kind === 'unreachable') return found;
  if ((admission.kind === 'open') !== targets.length > 0)
    found.push(`Opens slot "${name}" without a target, or has a target and does not open it`);
  for (const { workload, endpoint } of targets) {
    const fact = byId.get(workload);
    if (fact?.phase !== 'running' || fact.slot !== name)
      found.push(`Sends requests of slot "${name}" to "${workload}", which does not run for it`);
    else if (!fact.endpoints.some(({ host, port }) => host === endpoint.host && port === endpoint.port))
      found.push(`Sends requests of slot "${name}" to "${endpoint.host}:${endpoint.port}", where it does not listen`);
    const { probe } = observed.histories.get(workload) ?? {};
    if (probe?.passed !== true) found.push(`Sends requests of slot "${name}" to "${workload}", which has not passed a probe`);
    if (probe?.status === 'asleep') found.push(`Sends requests of slot "${name}" to "${workload}", which sleeps`);
    if (fact !== undefined && isRejected(fact, desired.slots.get(name)))
      found.push(`Sends requests of slot "${name}" to "${workload}", which has failed its cases`);
    if (draining.includes(workload)) found.push(`Sends requests of slot "${name}" to "${workload}", which is draining`);
  }
  return found;
}
