/**
 * The central decision of the program: from what is desired and what is observed to what to do next. Synchronous, total and pure. Executing a
 * plan requires no further choice, and planning again once it has taken effect yields no action. The loop calls it once per pass:
 *
 *     view each slot → is it wanted, what prevents it (candidate) → share out memory → plan each slot → add what concerns no single slot
 */
import type { Desired, Observed, Plan } from './facts/facts.ts';
import { gather, viewSlot } from './facts/view.ts';
import type { PlanCache } from './plan-cache.ts';
import { planSlot, type SlotPlan } from './plan-slot.ts';
import { createAllocator, type Allocator } from './rules/allocator.ts';
import { makeCandidate, type Candidate } from './rules/candidate.ts';
import { shareMemory, type MemoryVerdict } from './rules/share-memory.ts';
import { cancelPulls, sharePulls } from './steps/plan-pulls.ts';
import { planOrphans } from './steps/plan-stops.ts';
import { planUnreachable } from './steps/plan-unreachable.ts';

/** Without a memory, each slot is planned again. */
export function plan(desired: Desired, observed: Observed, now: number, memory?: PlanCache): Plan {
  const gathered = gather(desired, observed, now);
  const views = [...desired.slots.values()].map((slot) => viewSlot(slot, gathered));
  if (observed.runtime.kind === 'unreachable') return planUnreachable(views, observed.runtime.message);

  const candidates = views.map(makeCandidate);
  const claims = candidates.flatMap(({ claim }) => claim ?? []);
  const { verdicts, admittedBytes } = shareMemory(claims, desired.memoryBudgetBytes);
  const allocator = createAllocator(desired, observed, candidates, admittedBytes);
  const slots = candidates.map((candidate) => planCandidate(candidate, verdicts.get(candidate.view.slot.name), allocator, memory));
  memory?.prune(desired.slots);

  const orphans = planOrphans(gathered);
  const cancelled = cancelPulls(observed, new Set(slots.flatMap(({ decision }) => decision.waitsFor)));
  const stopped = orphans.flatMap(({ timed }) => timed.actions);
  return {
    actions: sharePulls([...stopped, ...cancelled, ...slots.flatMap(({ actions }) => actions)]),
    decisions: new Map(slots.map(({ decision }) => [decision.name, decision])),
    orphans: new Map(orphans.map(({ id, because }) => [id, because])),
    wakeAt: soonest([...orphans.map(({ timed }) => timed), ...slots]),
  };
}

function planCandidate(
  candidate: Candidate,
  verdict: MemoryVerdict | undefined,
  allocator: Allocator,
  memory: PlanCache | undefined,
): SlotPlan {
  const { view, gates, notWanted } = candidate;
  const question = { view, notWanted, hindered: gates.length > 0, verdict };
  const known = memory?.recall(question);
  if (known !== undefined) return known;
  const made = planSlot({ view, gates, notWanted, verdict, allocator });
  memory?.keep(question, made);
  return made;
}

function soonest(parts: readonly { readonly wakes: readonly number[] }[]): number | undefined {
  const at = parts.reduce((min, { wakes }) => Math.min(min, ...wakes), Number.POSITIVE_INFINITY);
  return Number.isFinite(at) ? at : undefined;
}
