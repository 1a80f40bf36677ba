/** Which model answers the cases of its slot now, and what is settled about its text. Pure. */
import type { Rules } from '../../../evaluation/decide/verdict.ts';
import { parseDurationMs } from '../../../schema/words/quantities.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { Action } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Roles } from '../rules/assign-roles.ts';
import { COMPARING, describeTrial, isJudged, watchedUntil } from '../rules/evaluation.ts';
import { askedServer } from './plan-stops.ts';

/** `ends`: why a text on trial, or one that is watched, is rolled back now. */
export function planEvaluation(view: SlotView, { serving, starting, waitsFor }: Roles, ends: Finding | undefined): readonly Action[] {
  const { slot, settling, evaluating } = view;
  const { rollout, generation, name } = slot;
  if (rollout === undefined || settling || !view.leads) return [];
  const { accepted, checks, isOnTrial, verdict, watched } = rollout;
  // Without a template, every workload counts as current.
  const { revision } = (view.template !== undefined && serving?.standing === 'current' && serving.fact) || NONE;
  const isNew = isOnTrial || accepted?.revision !== revision || (watched !== undefined && watched.since === undefined);
  if (revision !== undefined && isNew)
    return [{ name: 'settle', slot: name, because: ANSWERS, args: { settlement: { kind: 'served', generation, revision, at: view.now } } }];
  if (ends !== undefined) {
    const { misses = [], score } = verdict ?? {};
    const judged = starting?.fact.revision ?? verdict?.revision ?? view.template?.revision ?? '';
    const final = { outcome: 'rolled_back', revision: judged, checks: checks?.digest ?? '', because: ends.message, misses, score } as const;
    return [{ name: 'settle', slot: name, because: ends, args: { settlement: { kind: 'verdict', generation, verdict: final } } }];
  }
  if ((watchedUntil(view) ?? view.now + 1) <= view.now)
    return [{ name: 'settle', slot: name, because: ANSWERS, args: { settlement: { kind: 'proven', generation } } }];
  if (evaluating || checks === undefined) return [];
  const evaluate = (workload: WorkloadView, because: Finding | undefined, as: 'baseline' | 'candidate'): readonly Action[] => {
    if (because === undefined) return [];
    const asked = { ...askedServer(workload, view), revision: workload.fact.revision };
    const args = { ...asked, as, generation, checks, rules: rulesOf(view), onFailure: onFailureOf(view) };
    return [{ name: 'evaluate', slot: name, because, args }];
  };
  if (waitsFor === COMPARING && serving !== undefined) return evaluate(serving, COMPARING, 'baseline');
  return starting !== undefined && isJudged(starting, view) ? evaluate(starting, describeTrial(view, starting), 'candidate') : [];
}

const ANSWERS: Finding = { reason: 'ProbePassed', message: 'The slot answers' };
const NONE: { readonly revision?: string } = {};

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
