/** Which model answers the cases of its slot now, and what is settled about its text. Pure. */
import type { Rules } from '../../../evaluation/decide/verdict.ts';
import { parseDurationMs } from '../../../schema/words/quantities.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { Action } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Roles } from '../rules/assign-roles.ts';
import { COMPARING, describeTrial, isJudged } from '../rules/evaluation.ts';
import { askedServer } from './plan-stops.ts';

/** `ends`: why a text on trial is rolled back now. */
export function planEvaluation(view: SlotView, { serving, starting, waitsFor }: Roles, ends: Finding | undefined): readonly Action[] {
  const { slot, settling, evaluating } = view;
  const { rollout, generation, name } = slot;
  if (rollout === undefined || settling || !view.leads) return [];
  const { accepted, checks, isOnTrial, verdict } = rollout;
  // Without a template, every workload counts as current.
  if (view.template !== undefined && serving?.standing === 'current' && (isOnTrial || accepted?.revision !== serving.fact.revision)) {
    const because: Finding = { reason: 'ProbePassed', message: 'The slot answers' };
    return [{ name: 'settle', slot: name, because, args: { settlement: { kind: 'served', generation, revision: serving.fact.revision } } }];
  }
  if (ends !== undefined) {
    const misses = verdict?.misses ?? [];
    const revision = starting?.fact.revision ?? verdict?.revision ?? view.template?.revision ?? '';
    const final = { outcome: 'rolled_back', revision, checks: checks?.digest ?? '', because: ends.message, misses } as const;
    return [{ name: 'settle', slot: name, because: ends, args: { settlement: { kind: 'verdict', generation, verdict: final } } }];
  }
  if (evaluating || checks === undefined) return [];
  const evaluate = (workload: WorkloadView, because: Finding | undefined, as: 'baseline' | 'candidate'): readonly Action[] => {
    if (because === undefined) return [];
    const { revision } = workload.fact;
    const args = { ...askedServer(workload, view), as, generation, revision, checks, rules: rulesOf(view), onFailure: onFailureOf(view) };
    return [{ name: 'evaluate', slot: name, because, args }];
  };
  if (waitsFor === COMPARING && serving !== undefined) return evaluate(serving, COMPARING, 'baseline');
  return starting !== undefined && isJudged(starting, view) ? evaluate(starting, describeTrial(view, starting), 'candidate') : [];
}

const onFailureOf = ({ spec: { rollout } }: SlotView): 'held' | 'rolled_back' => (rollout?.onFailure === 'hold' ? 'held' : 'rolled_back');

function rulesOf({ spec, slot: { rollout } }: SlotView): Rules {
  const { pass = 1, compare, tolerance = 0, limits } = spec.rollout ?? {};
  const { baseline } = rollout?.accepted ?? {};
  const isComparable = compare === true && baseline?.checks === rollout?.checks?.digest;
  return {
    pass,
    limits: limits && {
      firstTokenP95: limits.firstTokenP95 === undefined ? undefined : parseDurationMs(limits.firstTokenP95),
      tokensPerSecond: limits.tokensPerSecond,
    },
    compare: isComparable && baseline !== undefined ? { report: baseline.report, tolerance } : undefined,
  };
}
