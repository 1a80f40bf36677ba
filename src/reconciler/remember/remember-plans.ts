/**
 * Remembers the steps of a plan, so that a pass costs what has changed: of thousands of slots nearly all are as they
 * were in the last pass. The candidate and the plan of a slot at rest are returned again while its facts are the same
 * and time changes nothing; memory is shared out again only where a claim has changed. Facts are compared as objects,
 * which relies on one thing: what a pass was given is never changed in place.
 */
import type { SlotName } from '../../schema/words/names.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { isSameValue, reuse } from '../../schema/words/same-value.ts';
import type { Gathered, SharedFacts } from '../decide/facts/gather.ts';
import { factsOf, isSameAs, sourcesOf, type SlotSources } from '../decide/facts/slot-facts.ts';
import { PLAN_STEPS, type PlanSteps } from '../decide/plan.ts';
import { withVerdict, type SlotPlan } from '../decide/plan-slot.ts';
import type { Candidate } from '../decide/rules/candidate.ts';
import type { MemoryShares } from '../decide/rules/share-memory.ts';
import { wantedUntil } from '../decide/rules/wanted.ts';
import { forgetOthers } from '../../platform/memo.ts';
import type { ObservedWorkload } from '../ports.ts';

interface Remembered {
  readonly candidate: Candidate;
  /** Undefined until a plan is made, and where the slot is not at rest. */
  readonly rest: Rest | undefined;
}

interface Rest {
  readonly plan: SlotPlan;
  /** Until when time leaves it as it is, in monotonic milliseconds. */
  readonly until: number;
  /** What the facts of the candidate were made of when they were last compared, which is compared faster. */
  sources?: SlotSources;
}

/** `steps`: what computes a step where nothing is remembered. */
export function rememberSteps(steps: PlanSteps = PLAN_STEPS): {
  readonly steps: PlanSteps;
  /** Forgets slots that are gone. */
  keepOnly(slots: ReadonlyMap<SlotName, unknown>): void;
} {
  const remembered = new Map<SlotName, Remembered>();
  let gathered: Gathered | undefined;
  let shared: { readonly args: Parameters<PlanSteps['shareMemory']>; readonly shares: MemoryShares } | undefined;
  return {
    steps: {
      gather(desired, observed, now) {
        gathered = settle(gathered, steps.gather(desired, observed, now));
        return gathered;
      },
      consider(read, present) {
        const last = remembered.get(read.name);
        const slot = reuse(last?.candidate.facts.slot, read);
        if (last?.rest !== undefined && present.now < last.rest.until) {
          const sources = sourcesOf(slot, present);
          const isSame = last.rest.sources !== undefined && isSameAs(last.rest.sources, sources);
          if (isSame || isSameAs(last.candidate.facts, factsOf(sources))) {
            last.rest.sources = sources;
            return last.candidate;
          }
        }
        const candidate = withClaim(steps.consider(slot, present), last?.candidate.claim);
        remembered.set(slot.name, { candidate, rest: undefined });
        return candidate;
      },
      shareMemory(claims, pools) {
        if (shared !== undefined && isSameList(shared.args[0], claims) && isSameValue(shared.args[1], pools)) return shared.shares;
        shared = { args: [claims, pools], shares: steps.shareMemory(claims, pools, shared?.shares) };
        return shared.shares;
      },
      planSlot(candidate, verdict, allocation) {
        const last = remembered.get(candidate.view.slot.name);
        if (last === undefined || last.candidate !== candidate) return steps.planSlot(candidate, verdict, allocation);
        const before = last.rest?.plan;
        const known = before && withVerdict(before, verdict);
        if (known !== undefined && known === before) return known;
        // A candidate of an earlier pass knows only the time of that pass.
        const isOld = before !== undefined && known === undefined;
        const present =
          isOld && gathered !== undefined ? withClaim(steps.consider(candidate.view.slot, gathered), candidate.claim) : candidate;
        const plan = known ?? steps.planSlot(present, verdict, allocation);
        const rest = plan.atRest ? { plan, until: validUntil(present, plan) } : undefined;
        remembered.set(present.view.slot.name, { candidate: present, rest });
        return plan;
      },
    },
    keepOnly: (slots) => forgetOthers(remembered, slots),
  };
}

/** An edit that changes nothing in what a slot claims leaves the order of the memory as it is. */
function withClaim(candidate: Candidate, before: Candidate['claim']): Candidate {
  return { ...candidate, claim: reuse(before, candidate.claim) };
}

/** Until when time leaves a plan unchanged, a claim in its place, and a slot that should run running. */
function validUntil({ claim, notWanted, view }: Candidate, plan: SlotPlan): number {
  const wanted = notWanted === undefined ? wantedUntil(view) : Number.POSITIVE_INFINITY;
  return Math.min(plan.validUntil, claim?.turn.until ?? Number.POSITIVE_INFINITY, wanted);
}

/** Interns facts that adapters make again in each pass: equal content becomes the same object. */
function settle(before: Gathered | undefined, after: Gathered): Gathered {
  if (before === undefined) return after;
  return { ...after, shared: settleShared(before.shared, after.shared), workloads: settleWorkloads(before, after) };
}

function settleShared(before: SharedFacts, after: SharedFacts): SharedFacts {
  const machine = reuse(before.circumstances.machine, after.circumstances.machine);
  const circumstances = reuseParts(before.circumstances, { ...after.circumstances, machine });
  const ofKind = (kind: ProviderKind) => before.images.get(kind) ?? new Map<never, never>();
  const images = new Map(after.images.entries().map(([kind, each]) => [kind, settleEach(ofKind(kind), each)]));
  return reuseParts(before, {
    circumstances,
    models: settleEach(before.models, after.models),
    images: reuseEntries(before.images, images),
    aliasConflicts: settleEach(before.aliasConflicts, after.aliasConflicts),
    fallbackProblems: settleEach(before.fallbackProblems, after.fallbackProblems),
    judged: settleEach(before.judged, after.judged, (judgement) => 'verdicts' in judgement),
    pulls: reuseEntries(before.pulls, after.pulls),
  });
}

function settleWorkloads(before: Gathered, after: Gathered): Gathered['workloads'] {
  if (isSameList(listOf(before), listOf(after))) return before.workloads;
  const known = new Map([...before.workloads.values()].flat().map((workload) => [workload.id, workload]));
  return new Map(after.workloads.entries().map(([slot, own]) => [slot, own.map((each) => reuse(known.get(each.id), each))]));
}

function listOf({ observed: { runtime } }: Gathered): readonly ObservedWorkload[] {
  return runtime.kind === 'reachable' ? runtime.facts.workloads : NO_WORKLOADS;
}

const NO_WORKLOADS: readonly ObservedWorkload[] = [];

/** Interns values and tables of values. `isPlain`: whether a value can be compared; an error cannot. */
function settleEach<Key, Value>(
  before: ReadonlyMap<Key, Value>,
  after: ReadonlyMap<Key, Value>,
  isPlain: (value: Value) => boolean = () => true,
): ReadonlyMap<Key, Value> {
  return reuseEntries(
    before,
    new Map(after.entries().map(([key, value]) => [key, isPlain(value) ? reuse(before.get(key), value) : value])),
  );
}

function reuseEntries<Key, Value>(before: ReadonlyMap<Key, Value>, after: ReadonlyMap<Key, Value>): ReadonlyMap<Key, Value> {
  const isSame = before.size === after.size && after.entries().every(([key, value]) => before.has(key) && before.get(key) === value);
  return isSame ? before : after;
}

function reuseParts<Table extends object>(before: Table, after: Table): Table {
  for (const key in after) if (before[key] !== after[key]) return after;
  return before;
}

function isSameList(before: readonly unknown[], after: readonly unknown[]): boolean {
  return before.length === after.length && before.every((each, index) => each === after[index]);
}
