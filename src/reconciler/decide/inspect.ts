/**
 * Checks a plan against the facts, independently of the planner: what must hold for any plan, whatever the rules are. A plan that fails is not
 * executed. Shares no code with the planner except for the facts and the table of moves. Pure.
 */
import type { SlotName, WorkloadId } from '../../schema/names.ts';
import type { ObservedWorkload, Workload } from '../ports.ts';
import { keyOfAction, type Action } from './facts/actions.ts';
import type { Desired, Observed, Plan } from './facts/facts.ts';
import { mayMove } from './rules/moves.ts';

/** What is wrong with the plan, a sentence for each problem; empty where it may be executed. */
export function inspect(plan: Plan, desired: Desired, observed: Observed, now: number): readonly string[] {
  const workloads = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
  const byId = new Map(workloads.map((workload) => [workload.id, workload]));
  const bySlot = Map.groupBy(workloads, ({ slot }) => slot);
  return [
    ...unreachableTouched(plan, observed),
    ...keysTwice(plan, observed),
    ...portsTwice(plan, observed, workloads),
    ...plan.actions.flatMap((action) => inspectAction(action, { plan, desired, observed, now, byId, bySlot })),
    ...movesOutside(plan, observed),
    ...targetsWrong(plan, observed, byId),
  ];
}

interface Case {
  readonly plan: Plan;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
  readonly byId: ReadonlyMap<WorkloadId, ObservedWorkload>;
  readonly bySlot: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
}

function inspectAction(action: Action, facts: Case): readonly string[] {
  if (action.name === 'apply') {
    const { workload, updatesInPlace } = action.args;
    return [
      ...inspectNeeds(workload, facts),
      ...(updatesInPlace === undefined ? inspectStart(workload, facts) : inspectInPlaceUpdate(workload, updatesInPlace.workload, facts)),
    ];
  }
  return action.name === 'stop' ? inspectStop(action, facts) : [];
}

function inspectNeeds(workload: Workload, { desired, observed }: Case): readonly string[] {
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
  if (slot !== undefined && observed.models.get(slot.spec.model.default)?.kind !== 'present')
    found.push(`Starts slot "${name}" without its model`);
  if (image !== undefined && !images.some((fact) => fact.reference === image && fact.present))
    found.push(`Starts slot "${name}" without its image`);
  return found;
}

function inspectStart(workload: Workload, { plan, bySlot }: Case): readonly string[] {
  const name = workload.slot;
  const others = bySlot.get(name) ?? [];
  const serving = plan.decisions.get(name)?.serving;
  const found: string[] = [];
  if (others.some((other) => other.id !== serving)) found.push(`Starts a workload of slot "${name}" beside one that does not answer`);
  if (others.some((other) => other.name === workload.name))
    found.push(`Starts a workload with the name "${workload.name}", which is taken`);
  return found;
}

/** Only an existing workload of the wanted revision that is kept may be updated; any other would be started beside the one that is kept. */
function inspectInPlaceUpdate(workload: Workload, id: WorkloadId, { plan, observed, byId }: Case): readonly string[] {
  const fact = byId.get(id);
  const found: string[] = [];
  if (observed.traits.inPlace === undefined) found.push(`Updates "${id}" in place, which this runtime cannot do`);
  if (fact?.phase !== 'created' && fact?.phase !== 'running') return [...found, `Updates "${id}", which does not exist or is ending`];
  if (fact.name !== workload.name || fact.slot !== workload.slot || fact.revision !== workload.revision)
    found.push(`Updates "${id}" to another workload`);
  if (plan.decisions.get(workload.slot)?.draining.includes(id) === true) found.push(`Updates "${id}", which is draining`);
  return found;
}

function inspectStop({ args }: Extract<Action, { name: 'stop' }>, facts: Case): readonly string[] {
  const { observed, desired, plan, now } = facts;
  const workload = facts.byId.get(args.workload);
  if (workload === undefined) return [`Stops "${args.workload}", which does not exist`];
  const found: string[] = [];
  const serving = plan.decisions.get(workload.slot)?.serving;
  if (serving === args.workload) found.push(`Stops "${args.workload}" of slot "${workload.slot}", which gets requests`);
  const inFlight = observed.activity.get(args.workload)?.inFlight ?? 0;
  const drainMs = desired.slots.get(workload.slot)?.spec.lifecycle.drainTimeoutMs ?? 30_000;
  const since = observed.histories.get(args.workload)?.drainingSince;
  // What answered once and then nothing three times will not finish a request either.
  const probe = observed.histories.get(args.workload)?.probe;
  const silent = probe?.passed === true && probe.consecutiveSilences >= 3;
  const inTime = workload.phase !== 'exited' && !silent && (since === undefined ? drainMs > 0 : now - since < drainMs);
  if (inFlight > 0 && inTime) found.push(`Stops "${args.workload}" with ${inFlight} requests in flight before its drain time is over`);
  return found;
}

function unreachableTouched(plan: Plan, observed: Observed): readonly string[] {
  return observed.runtime.kind === 'unreachable' && plan.actions.length > 0 ? ['Acts while the runtime cannot be reached'] : [];
}

function keysTwice(plan: Plan, observed: Observed): readonly string[] {
  const seen = new Set(observed.running.keys());
  return plan.actions.flatMap((action) => {
    const key = keyOfAction(action);
    if (seen.has(key)) return [`Starts "${key}" twice`];
    seen.add(key);
    return [];
  });
}

function portsTwice(plan: Plan, observed: Observed, workloads: readonly ObservedWorkload[]): readonly string[] {
  if (observed.traits.network === 'pods') return [];
  const taken = new Set(workloads.map(({ container }) => container.port?.host));
  for (const { action } of observed.running.values()) if (action.name === 'apply') taken.add(action.args.workload.port.host);
  return plan.actions.flatMap((action) => {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) return [];
    const { host } = action.args.workload.port;
    if (taken.has(host)) return [`Gives port ${host} to slot "${action.slot}", which is taken`];
    taken.add(host);
    return [];
  });
}

function movesOutside(plan: Plan, observed: Observed): readonly string[] {
  const found: string[] = [];
  for (const { name, state } of plan.decisions.values()) {
    const from = observed.published.get(name)?.decision.state;
    if (from !== undefined && !mayMove(from, state))
      found.push(`Moves slot "${name}" from "${from}" to "${state}", which the table of moves does not allow`);
  }
  return found;
}

function targetsWrong(plan: Plan, observed: Observed, byId: ReadonlyMap<WorkloadId, ObservedWorkload>): readonly string[] {
  if (observed.runtime.kind === 'unreachable') return [];
  const found: string[] = [];
  for (const { name, targets, admission, draining } of plan.decisions.values()) {
    if ((admission.kind === 'open') !== targets.length > 0)
      found.push(`Opens slot "${name}" without a target, or has a target and does not open it`);
    for (const { workload, endpoint } of targets) {
      const fact = byId.get(workload);
      if (fact?.phase !== 'running' || fact.slot !== name)
        found.push(`Sends requests of slot "${name}" to "${workload}", which does not run for it`);
      else if (!fact.endpoints.some(({ host, port }) => host === endpoint.host && port === endpoint.port))
        found.push(`Sends requests of slot "${name}" to "${endpoint.host}:${endpoint.port}", where it does not listen`);
      if (draining.includes(workload)) found.push(`Sends requests of slot "${name}" to "${workload}", which is draining`);
    }
  }
  return found;
}
