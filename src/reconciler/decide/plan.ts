/**
 * The central decision of the program: from what is desired and what is observed to what to do next. Synchronous, total
 * and pure. Executing a plan requires no further choice, and planning again once it has taken effect yields no action.
 * The loop calls it once per pass:
 *
 *     gather the facts → consider each slot → share memory → plan each slot → add what concerns no single slot
 */
import { inOneGo, PIECES_PER_PART, type Parts } from '../../platform/decide/parse-json.ts';
import type { Finding } from '../../schema/words/failure.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { Decision, Desired, Observed, Plan } from './facts/facts.ts';
import { gather } from './facts/gather.ts';
import { findPools, NO_BYTES, sumBytes, type MemoryVerdict, type PoolBytes } from './facts/memory-pools.ts';
import { holdUp, planUnreachable } from './hold-up.ts';
import { planSlot, type SlotPlan } from './plan-slot.ts';
import { afterStarts, findUsed, openAllocation, sharedResources, type Allocation } from './rules/allocator.ts';
import { findTooLarge } from './rules/gates.ts';
import { consider, slotMemory, type Candidate } from './rules/candidate.ts';
import { shareMemory, type MemoryClaim, type MemoryShares } from './rules/share-memory.ts';
import { cancelPulls, sharePulls } from './steps/plan-start.ts';
import { planReadAhead, type SlotUse } from './steps/plan-read-ahead.ts';
import { planOrphans } from './steps/plan-stops.ts';

/** The most expensive steps of a plan. The loop passes memoised versions of them. */
export interface PlanSteps {
  readonly gather: typeof gather;
  readonly consider: typeof consider;
  readonly shareMemory: (...args: Parameters<typeof shareMemory>) => ReturnType<typeof shareMemory>;
  readonly planSlot: typeof planCandidate;
}

export const PLAN_STEPS: PlanSteps = { gather, consider, shareMemory, planSlot: planCandidate };

export function plan(desired: Desired, observed: Observed, now: number, steps: PlanSteps = PLAN_STEPS): Plan {
  return inOneGo(planInParts(desired, observed, now, steps));
}

/** The same in parts. What it is given must not change before it has ended. */
export function* planInParts(desired: Desired, observed: Observed, now: number, steps: PlanSteps = PLAN_STEPS): Parts<Plan> {
  const gathered = steps.gather(desired, observed, now);
  yield;
  const candidates: Candidate[] = [];
  for (const slot of desired.slots.values()) {
    candidates.push(steps.consider(slot, gathered));
    if (candidates.length % PIECES_PER_PART === 0) yield;
  }
  if (observed.runtime.kind === 'unreachable') {
    const views = candidates.map(({ view }) => view);
    return planUnreachable(views, observed.published, observed.runtime.message);
  }

  const used = findUsed(desired, observed);
  const held = sumBytes([used.memory, ...candidates.map((candidate) => candidate.held).filter((bytes) => bytes !== NO_BYTES)]);
  const pools = findPools({ ...observed.host, hostBudgetBytes: desired.memoryBudgetBytes, hardware: desired.hardware, used: held });
  const shares = steps.shareMemory(
    candidates.flatMap(({ claim }) => claim ?? []),
    pools,
  );
  let allocation = openAllocation(sharedResources(desired, observed, { pools, held, admitted: shares.admitted, used }));
  yield;
  const slots: SlotPlan[] = [];
  const decisions = new Map<SlotName, Decision>();
  for (const candidate of candidates) {
    const { name } = candidate.view.slot;
    const slot = planOrHoldUp(candidate, shares.verdicts.get(name), allocation, { steps, observed });
    slots.push(slot);
    decisions.set(name, slot.decision);
    if (slot.actions.length > 0) allocation = afterStarts(allocation, slot.actions);
    if (slots.length % PIECES_PER_PART === 0) yield;
  }

  const orphans = planOrphans(gathered);
  const cancelled = cancelPulls(observed, new Set(slots.flatMap(({ decision }) => decision.waitsFor)));
  const stopped = orphans.flatMap(({ timed }) => timed.actions);
  return {
    actions: sharePulls([...stopped, ...cancelled, ...slots.flatMap(({ actions }) => actions)]),
    decisions,
    readAhead: planReadAhead(decisions.values(), usesOf(used.memory, candidates), observed),
    orphans: new Map(orphans.map(({ id, because }) => [id, because])),
    wakeAt: soonest([
      ...orphans.map(({ timed }) => timed),
      ...slots,
      {
        wakes: [shares.changesAt, observed.warmChangesAt, lacksMemoryOfOthers(shares) ? now + READ_AGAIN_MS : undefined].filter(
          (at) => at !== undefined,
        ),
      },
    ]),
  };
}

/** Vendor tools are asked as often. */
const READ_AGAIN_MS = 5000;

/**
 * Other programs that end tell nobody, and the memory of an own server that has just ended counts as theirs until the
 * next reading.
 */
function lacksMemoryOfOthers({ turns }: MemoryShares): boolean {
  const isWanted = ({ turn }: MemoryClaim): boolean => turn.group !== 'unloaded' && turn.group !== 'warm';
  return turns.some(({ claim, verdict }) => !verdict.admitted && verdict.othersBytes > 0 && isWanted(claim));
}

function planCandidate(candidate: Candidate, verdict: MemoryVerdict | undefined, allocation: Allocation): SlotPlan {
  const { view, gates, ahead } = candidate;
  const memory = slotMemory(candidate, verdict);
  const tooLarge = verdict === undefined ? findTooLarge(memory.needed, allocation.resources.pools) : undefined;
  const notWanted = candidate.notWanted ?? (verdict?.admitted === false ? ahead && withoutMemory(ahead) : undefined);
  return planSlot({ view, gates: tooLarge === undefined ? gates : [...gates, tooLarge], notWanted, ahead, verdict, memory }, allocation);
}

/** Nothing is computed unless somebody asks. `others`: held by none of the slots. */
function* usesOf(others: PoolBytes, candidates: readonly Candidate[]): Generator<SlotUse> {
  yield { held: others, allocatedBytes: 0 };
  for (const { view, held } of candidates)
    yield { held, allocatedBytes: view.workloads.reduce((sum, { fact }) => sum + (fact.memoryBytes?.host ?? 0), 0) };
}

const withoutMemory = ({ reason, message }: Finding): Finding => ({
  reason,
  message: `${message}; to load it ahead of requests, no memory is free`,
});

/** A plan that cannot be made concerns its own slot only. */
function planOrHoldUp(
  candidate: Candidate,
  verdict: MemoryVerdict | undefined,
  allocation: Allocation,
  { steps, observed }: { readonly steps: PlanSteps; readonly observed: Observed },
): SlotPlan {
  try {
    return steps.planSlot(candidate, verdict, allocation);
  } catch (error) {
    const { view } = candidate;
    const decision = holdUp(view, observed.published.get(view.slot.name)?.decision, String(error));
    return { decision, actions: [], wakes: [], validUntil: 0, atRest: false };
  }
}

function soonest(parts: readonly { readonly wakes: readonly number[] }[]): number | undefined {
  let at = Number.POSITIVE_INFINITY;
  for (const { wakes } of parts) for (const wake of wakes) if (wake < at) at = wake;
  return Number.isFinite(at) ? at : undefined;
}
