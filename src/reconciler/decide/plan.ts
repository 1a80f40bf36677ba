/**
 * The one decision of the program: from what is desired and what is observed to what is done next. Synchronous, total and pure. Executing a
 * plan makes no choice, and planning again once it has taken effect yields no action.
 */
import type { SlotName, WorkloadId } from '../../schema/names.ts';
import type { Action } from './facts/actions.ts';
import { findGates, whyNotWanted, type Gate } from './rules/checks.ts';
import type { Decision, Desired, Finding, Observed, Plan } from './facts/facts.ts';
import { createAllocator, type Allocator } from './rules/allocator.ts';
import type { PlanCache } from './plan-cache.ts';
import { planOrphanStop, type TimedActions } from './steps/plan-stops.ts';
import { planSlot, type SlotPlan } from './plan-slot.ts';
import { planUnreachable } from './steps/plan-unreachable.ts';
import { shareMemory, type MemoryClaim, type MemoryShares, type MemoryVerdict } from './rules/share-memory.ts';
import { gather, viewSlot, viewWorkload, type Gathered, type SlotView } from './facts/view.ts';

/** Requests on a workload whose slot was removed get the default drain time. */
const ORPHAN_DRAIN_MS = 30_000;

interface Candidate {
  readonly view: SlotView;
  readonly notWanted: Finding | undefined;
  readonly gates: readonly Gate[];
  readonly claim: MemoryClaim | undefined;
  /** What its workloads hold now. */
  readonly heldBytes: number;
}

/** Without a memory, each slot is planned anew. */
export function plan(desired: Desired, observed: Observed, now: number, memory?: PlanCache): Plan {
  const gathered = gather(observed);
  const views = [...desired.slots.values()].map((slot) => viewSlot(slot, desired, observed, gathered, now));
  if (observed.runtime.kind === 'unreachable') return planUnreachable(views, observed.runtime.message);
  const candidates = views.map((view) => makeCandidate(view));
  const budget = desired.memoryBudgetBytes;
  const shares = shareMemory(
    candidates.flatMap(({ claim }) => claim ?? []),
    budget,
  );
  const orphans = planOrphans(desired, observed, gathered, now);
  const allocator = openAllocator(desired, observed, candidates, shares);
  const slots = candidates.map((candidate) => planCandidate(candidate, shares.verdicts.get(candidate.view.slot.name), allocator, memory));
  memory?.prune(desired.slots);
  const decisions = new Map(slots.map(({ decision }) => [decision.name, decision]));
  const actions = [
    ...orphans.flatMap(({ timed }) => timed.actions),
    ...cancelPulls(observed, decisions),
    ...slots.flatMap((slot) => slot.actions),
  ];
  return {
    actions: onePerPull(actions),
    decisions,
    orphans: new Map(orphans.map(({ workload, because }) => [workload, because])),
    wakeAt: soonest([...orphans.map(({ timed }) => timed), ...slots]),
  };
}

function planCandidate(
  { view, gates, notWanted }: Candidate,
  verdict: MemoryVerdict | undefined,
  allocator: Allocator,
  memory: PlanCache | undefined,
): SlotPlan {
  const question = { view, notWanted, hindered: gates.length > 0, verdict };
  const known = memory?.recall(question);
  if (known !== undefined) return known;
  const made = planSlot(view, gates, notWanted, verdict, allocator);
  memory?.keep(question, made);
  return made;
}

function makeCandidate(view: SlotView): Candidate {
  const notWanted = whyNotWanted(view);
  const held = view.workloads.map((workload) => heldBytes(workload, view));
  const incumbent = view.workloads.some(({ alive }) => alive) || view.applying !== undefined;
  const gates = findGates(view);
  const willStart = incumbent || gates.every(({ kind }) => kind === 'waiting');
  const own = view.template?.memoryBytes;
  const bytes = Math.max(own ?? 0, ...held);
  const claims = notWanted === undefined && willStart && (own !== undefined || held.length > 0);
  return {
    view,
    notWanted,
    gates,
    heldBytes: held.reduce((sum, each) => sum + each, 0),
    claim: claims
      ? {
          slot: view.slot.name,
          priority: view.spec.priority,
          bytes,
          onDemand: view.spec.load === 'on-demand',
          busy: view.inFlight > 0 || view.waiting > 0,
          incumbent,
          lastActiveAt: view.lastActiveAt ?? 0,
        }
      : undefined,
  };
}

function heldBytes({ fact, known }: SlotView['workloads'][number], view: SlotView): number {
  return fact.phase === 'exited' ? 0 : (known.origin?.memoryBytes ?? view.template?.memoryBytes ?? 0);
}

function openAllocator(desired: Desired, observed: Observed, candidates: readonly Candidate[], shares: MemoryShares): Allocator {
  const ports = new Set(observed.takenPorts);
  const pods = observed.traits.network === 'pods';
  let heldByAll = candidates.reduce((sum, candidate) => sum + candidate.heldBytes, 0);
  if (observed.runtime.kind === 'reachable') {
    for (const { id, slot, container, endpoints } of observed.runtime.facts.workloads) {
      const port = container.port?.host ?? endpoints[0]?.port;
      if (port !== undefined && !pods) ports.add(port);
      if (!desired.slots.has(slot)) heldByAll += observed.histories.get(id)?.origin?.memoryBytes ?? 0;
    }
  }
  for (const { action } of observed.running.values()) {
    if (action.name !== 'apply' || action.args.inPlace !== undefined) continue;
    if (!pods) ports.add(action.args.workload.port.host);
    heldByAll += action.args.origin.memoryBytes;
  }
  const bySlot = new Map(candidates.map((candidate) => [candidate.view.slot.name, candidate]));
  return createAllocator({
    portRange: desired.portRange,
    takenPorts: ports,
    budgetBytes: desired.memoryBudgetBytes,
    // Pods do not run in the memory of this host.
    availableBytes: pods ? undefined : observed.host.memoryAvailableBytes,
    heldBytes: heldByAll,
    admittedBytes: shares.admittedBytes,
    claimOf: ({ slot }) => {
      const candidate = bySlot.get(slot.name);
      return { claimBytes: candidate?.claim?.bytes ?? 0, heldBytes: candidate?.heldBytes ?? 0 };
    },
  });
}

function planOrphans(
  desired: Desired,
  observed: Observed,
  gathered: Gathered,
  now: number,
): readonly { readonly workload: WorkloadId; readonly because: Finding; readonly timed: TimedActions }[] {
  const orphans: { workload: WorkloadId; because: Finding; timed: TimedActions }[] = [];
  for (const [slot, workloads] of gathered.workloads) {
    if (desired.slots.has(slot)) continue;
    const because = whyOrphan(slot, desired);
    if (because === undefined) continue;
    for (const fact of workloads) {
      const view = viewWorkload(fact, undefined, undefined, undefined, observed, gathered.underWay, now);
      orphans.push({ workload: fact.id, because, timed: planOrphanStop(view, because, ORPHAN_DRAIN_MS, now) });
    }
  }
  return orphans;
}

/** A slot whose text cannot be read and never was: what runs of it is left alone until the text says something. */
function whyOrphan(slot: SlotName, desired: Desired): Finding | undefined {
  if (desired.refused.has(slot)) return undefined;
  return { reason: 'SlotRemoved', message: `Slot "${slot}" is no longer desired` };
}

function cancelPulls(observed: Observed, decisions: ReadonlyMap<SlotName, Decision>): readonly Action[] {
  const wanted = new Set([...decisions.values()].flatMap(({ waitsFor }) => waitsFor));
  return [...observed.running].flatMap(([key, { action, cancelled }]): Action[] => {
    if ((action.name !== 'pullImage' && action.name !== 'pullModel') || cancelled === true || wanted.has(key)) return [];
    const because: Finding = { reason: 'PullNotWanted', message: 'No slot needs it any more' };
    return [{ name: 'cancelPull', slot: action.slot, because, args: { key } }];
  });
}

/** Slots that need the same image or model share its pull. */
function onePerPull(actions: readonly Action[]): readonly Action[] {
  const seen = new Set<string>();
  return actions.filter((action) => {
    if (action.name !== 'pullImage' && action.name !== 'pullModel') return true;
    const key = action.name === 'pullImage' ? `image:${action.args.image.reference}` : `model:${action.args.model}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function soonest(parts: readonly { readonly wakes: readonly number[] }[]): number | undefined {
  const at = parts.reduce((min, { wakes }) => Math.min(min, ...wakes), Number.POSITIVE_INFINITY);
  return Number.isFinite(at) ? at : undefined;
}
