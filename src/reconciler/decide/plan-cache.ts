/**
 * The plans of slots at rest, kept from pass to pass: of thousands of slots nearly all are as they were. A plan is recalled only where nothing that was
 * looked at has changed and no time has come, so that it is the plan that would be made. Pure but for its memory.
 */
import type { SlotName } from '../../schema/names.ts';
import type { Finding } from './facts/facts.ts';
import type { SlotPlan } from './plan-slot.ts';
import type { MemoryVerdict } from './rules/share-memory.ts';
import type { SlotView, WorkloadView } from './facts/view.ts';

export interface SlotQuestion {
  readonly view: SlotView;
  readonly notWanted: Finding | undefined;
  /** Something keeps a workload from being started. */
  readonly hindered: boolean;
  readonly verdict: MemoryVerdict | undefined;
}

export interface PlanCache {
  recall(question: SlotQuestion): SlotPlan | undefined;
  keep(question: SlotQuestion, made: SlotPlan): void;
  /** Forgets slots that are gone. */
  prune(present: ReadonlyMap<SlotName, unknown>): void;
}

interface Kept {
  readonly question: SlotQuestion;
  readonly made: SlotPlan;
}

export function createPlanCache(): PlanCache {
  const kept = new Map<SlotName, Kept>();
  return {
    recall(question) {
      const before = kept.get(question.view.slot.name);
      if (before === undefined || question.hindered || question.view.now >= before.made.freshUntil) return undefined;
      return isFollowed(before.made, question.view) && isSameQuestion(before.question, question) ? before.made : undefined;
    },
    keep(question, made) {
      const { view, hindered } = question;
      if (!hindered && isAtRest(view, made)) kept.set(view.slot.name, { question, made });
      else kept.delete(view.slot.name);
    },
    prune(present) {
      if (kept.size <= present.size) return;
      for (const name of kept.keys()) if (!present.has(name)) kept.delete(name);
    },
  };
}

/** Nothing is to be done, and what was decided did not depend on other slots. */
function isAtRest({ failures }: SlotView, { actions, alone }: SlotPlan): boolean {
  return alone && actions.length === 0 && failures.length === 0;
}

/** What was decided then is what was decided last. */
function isFollowed({ decision }: SlotPlan, { previous }: SlotView): boolean {
  return previous?.targets === decision.targets && previous.serving === decision.serving;
}

function isSameQuestion(before: SlotQuestion, now: SlotQuestion): boolean {
  return (
    before.notWanted?.reason === now.notWanted?.reason && isSameView(before.view, now.view) && isSameVerdict(before.verdict, now.verdict)
  );
}

function isSameView(before: SlotView, now: SlotView): boolean {
  return (
    before.slot === now.slot &&
    before.template === now.template &&
    before.model === now.model &&
    before.imagePresent === now.imagePresent &&
    before.leads === now.leads &&
    before.failures.length === now.failures.length &&
    before.applying === now.applying &&
    before.stopping === now.stopping &&
    before.waiting === now.waiting &&
    (before.lastActiveAt === now.lastActiveAt || !mayBeIdle(now)) &&
    before.workloads.length === now.workloads.length &&
    before.workloads.every((workload, index) => isSameWorkload(workload, now.workloads[index]))
  );
}

/** Only then it matters when it was of use. */
function mayBeIdle({ spec, lastActiveAt }: SlotView): boolean {
  return lastActiveAt === undefined || spec.load === 'on-demand' || spec.lifecycle.idleTimeoutMs !== Number.POSITIVE_INFINITY;
}

function isSameWorkload(before: WorkloadView, now: WorkloadView | undefined): boolean {
  return (
    before.fact === now?.fact &&
    before.known === now.known &&
    before.inFlight === now.inFlight &&
    before.used === now.used &&
    before.alive === now.alive &&
    before.stopUnderWay === now.stopUnderWay &&
    before.probeUnderWay === now.probeUnderWay &&
    before.standing === now.standing &&
    // A slot with drift is not at rest.
    now.drift.length === before.drift.length &&
    before.behind === now.behind
  );
}

function isSameVerdict(before: MemoryVerdict | undefined, now: MemoryVerdict | undefined): boolean {
  if (before === now) return true;
  return (
    before?.admitted === now?.admitted &&
    before?.mayWait === now?.mayWait &&
    before?.bytes === now?.bytes &&
    before?.budgetBytes === now?.budgetBytes &&
    before?.aheadBytes === now?.aheadBytes &&
    before?.ahead.length === now?.ahead.length &&
    before?.ahead.every((name, index) => name === now?.ahead[index]) === true
  );
}
