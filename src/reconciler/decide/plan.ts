/**
 * The central decision of the program: from what is desired and what is observed to what to do next. Synchronous, total and pure. Executing a
 * plan requires no further choice, and planning again once it has taken effect yields no action. The loop calls it once per pass:
 *
 *     view each slot → is it wanted, what prevents it (candidate) → share out memory → plan each slot → add what concerns no single slot
 */
import type { DesiredSlot } from '../ports.ts';
import type { Decision, Desired, Observed, Plan } from './facts/facts.ts';
import { findPools, sumBytes } from './facts/memory-pools.ts';
import { gather, viewSlot, viewWithoutTemplate, type Gathered, type SlotView } from './facts/view.ts';
import { holdUp } from './hold-up.ts';
import { planSlot, type SlotPlan, type SlotQuestion } from './plan-slot.ts';
import { afterStarts, findUsed, openAllocation, sharedResources, type Allocation } from './rules/allocator.ts';
import { makeCandidate, slotMemory } from './rules/candidate.ts';
import { shareMemory } from './rules/share-memory.ts';
import { cancelPulls, sharePulls } from './steps/plan-pulls.ts';
import { planOrphans } from './steps/plan-stops.ts';
import { planUnreachable } from './steps/plan-unreachable.ts';

/** `planEach` plans one slot; the loop passes in one that remembers the plans of slots at rest. */
export function plan(desired: Desired, observed: Observed, now: number, planEach: typeof planSlot = planSlot): Plan {
  const gathered = gather(desired, observed, now);
  const views = [...desired.slots.values()].map((slot) => look(slot, gathered));
  if (observed.runtime.kind === 'unreachable') return planUnreachable(views, observed.published, observed.runtime.message);

  const candidates = views.map((view) => makeCandidate(view, desired.hardware));
  const used = findUsed(desired, observed);
  const held = sumBytes([used.memory, ...candidates.map((candidate) => candidate.held)]);
  const pools = findPools({ ...observed.host, hostBudgetBytes: desired.memoryBudgetBytes, hardware: desired.hardware, used: held });
  const shares = shareMemory(
    candidates.flatMap(({ claim }) => claim ?? []),
    pools,
  );
  let allocation = openAllocation(sharedResources(desired, observed, { pools, held, admitted: shares.admitted, used }));
  const slots: SlotPlan[] = [];
  for (const candidate of candidates) {
    const { view, gates, notWanted } = candidate;
    const verdict = shares.verdicts.get(view.slot.name);
    const question = { view, gates, notWanted, memory: slotMemory(candidate, verdict, desired.hardware), verdict };
    const slot = planOrHoldUp(question, allocation, planEach, observed.published.get(view.slot.name)?.decision);
    slots.push(slot);
    allocation = afterStarts(allocation, slot.actions);
  }

  const orphans = planOrphans(gathered);
  const cancelled = cancelPulls(observed, new Set(slots.flatMap(({ decision }) => decision.waitsFor)));
  const stopped = orphans.flatMap(({ timed }) => timed.actions);
  return {
    actions: sharePulls([...stopped, ...cancelled, ...slots.flatMap(({ actions }) => actions)]),
    decisions: new Map(slots.map(({ decision }) => [decision.name, decision])),
    orphans: new Map(orphans.map(({ id, because }) => [id, because])),
    wakeAt: soonest([...orphans.map(({ timed }) => timed), ...slots, { wakes: shares.changesAt === undefined ? [] : [shares.changesAt] }]),
  };
}

/** A provider that throws breaks its own slots only. */
function look(slot: DesiredSlot, gathered: Gathered): SlotView {
  try {
    return viewSlot(slot, gathered);
  } catch (error) {
    return viewWithoutTemplate(slot, gathered, String(error));
  }
}

/** A plan that cannot be made concerns its own slot only. */
function planOrHoldUp(question: SlotQuestion, allocation: Allocation, planEach: typeof planSlot, last: Decision | undefined): SlotPlan {
  try {
    return planEach(question, allocation);
  } catch (error) {
    const decision = holdUp(question.view, last, String(error));
    return { decision, actions: [], wakes: [], validUntil: 0, atRest: false };
  }
}

function soonest(parts: readonly { readonly wakes: readonly number[] }[]): number | undefined {
  const at = parts.reduce((min, { wakes }) => Math.min(min, ...wakes), Number.POSITIVE_INFINITY);
  return Number.isFinite(at) ? at : undefined;
}
