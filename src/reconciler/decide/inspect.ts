/**
 * Checks a plan against the facts, independently of the planner that made it: what must hold of any plan whatever the rules are. A plan that
 * fails is not executed. Shares no code with the planner but the facts. Pure.
 */
import type { SlotName, WorkloadId } from '../../spec/names.ts';
import type { ObservedWorkload } from '../ports.ts';
import { keyOfAction, type Action } from './actions.ts';
import type { Desired, Observed, Plan } from './facts.ts';
import { mayMove } from './moves.ts';

/** What is wrong with a plan, one sentence each; empty: it may be executed. */
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
  if (action.name === 'apply') return inspectApply(action.args.workload.slot, action, facts);
  return action.name === 'stop' ? inspectStop(action, facts) : [];
}

function inspectApply(name: SlotName, action: Extract<Action, { name: 'apply' }>, facts: Case): readonly string[] {
  const { desired, observed, plan } = facts;
  const slot = desired.slots.get(name);
  const decision = plan.decisions.get(name);
  const others = facts.bySlot.get(name) ?? [];
  const { workload } = action.args;
  const images = observed.runtime.kind === 'reachable' ? observed.runtime.facts.images : [];
  const image = workload.image?.reference;
  const found: string[] = [];
  if (slot?.spec.enabled !== true) found.push(`Starts a workload of slot "${name}", which is not wanted`);
  if (slot !== undefined && observed.models.get(slot.spec.model.default)?.kind !== 'present')
    found.push(`Starts slot "${name}" without its model`);
  if (image !== undefined && !images.some((fact) => fact.reference === image && fact.present))
    found.push(`Starts slot "${name}" without its image`);
  if (others.some((other) => other.id !== decision?.answering))
    found.push(`Starts a workload of slot "${name}" beside one that does not answer`);
  if (others.some((other) => other.name === workload.name))
    found.push(`Starts a workload under the name "${workload.name}", which is taken`);
  return found;
}

function inspectStop({ args }: Extract<Action, { name: 'stop' }>, facts: Case): readonly string[] {
  const { observed, desired, plan, now } = facts;
  const workload = facts.byId.get(args.workload);
  if (workload === undefined) return [`Stops "${args.workload}", which is not there`];
  const found: string[] = [];
  const answering = plan.decisions.get(workload.slot)?.answering;
  if (answering === args.workload) found.push(`Stops "${args.workload}" of slot "${workload.slot}", which gets requests`);
  const inFlight = observed.activity.get(args.workload)?.inFlight ?? 0;
  const drainMs = desired.slots.get(workload.slot)?.spec.lifecycle.drainTimeoutMs ?? 30_000;
  const since = observed.acquaintances.get(args.workload)?.drainingSince;
  const inTime = workload.phase !== 'exited' && (since === undefined ? drainMs > 0 : now - since < drainMs);
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
    if (seen.has(key)) return [`Begins "${key}" twice`];
    seen.add(key);
    return [];
  });
}

function portsTwice(plan: Plan, observed: Observed, workloads: readonly ObservedWorkload[]): readonly string[] {
  const taken = new Set(workloads.map(({ container }) => container.port?.host));
  for (const { action } of observed.running.values()) if (action.name === 'apply') taken.add(action.args.workload.port.host);
  return plan.actions.flatMap((action) => {
    if (action.name !== 'apply') return [];
    const { host } = action.args.workload.port;
    if (taken.has(host)) return [`Gives port ${host} to slot "${action.slot}", which is taken`];
    taken.add(host);
    return [];
  });
}

function movesOutside(plan: Plan, observed: Observed): readonly string[] {
  return [...plan.decisions.values()].flatMap(({ name, state }) => {
    const from = observed.previous.get(name)?.state;
    return from === undefined || mayMove(from, state)
      ? []
      : [`Moves slot "${name}" from "${from}" to "${state}", which is no move of the table`];
  });
}

function targetsWrong(plan: Plan, observed: Observed, byId: ReadonlyMap<WorkloadId, ObservedWorkload>): readonly string[] {
  if (observed.runtime.kind === 'unreachable') return [];
  return [...plan.decisions.values()].flatMap(({ name, targets, admission, draining }) => {
    const found: string[] = [];
    if ((admission.kind === 'open') !== targets.length > 0) found.push(`Opens slot "${name}" without a target, or has one and is shut`);
    for (const { workload } of targets) {
      const fact = byId.get(workload);
      if (fact?.phase !== 'running' || fact.slot !== name)
        found.push(`Sends requests of slot "${name}" to "${workload}", which does not run for it`);
      if (draining.includes(workload)) found.push(`Sends requests of slot "${name}" to "${workload}", which is leaving`);
    }
    return found;
  });
}
