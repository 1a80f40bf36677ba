/** Lets a model answer the cases of its slot, and settles what follows. `decide/` judges the answers. */
import type { EvaluationReport } from '../evaluation/decide/evaluation-report.ts';
import { judgeReport } from '../evaluation/decide/verdict.ts';
import { messageOf } from '../platform/error-text.ts';
import type { ActionArgs, Evaluation } from './decide/facts/actions.ts';
import type { SlotSource } from './ports.ts';

export interface EvaluateDeps {
  /** Default: no model is asked. */
  readonly evaluation?: Evaluation | undefined;
  /** Default: no slot has cases. */
  readonly source?: Pick<SlotSource, 'settle'>;
}

/** Settles what follows from the answers; false if the signal aborts. Without a report, a model answers nothing. */
export async function evaluateModel(
  { evaluation, source }: EvaluateDeps,
  args: ActionArgs['evaluate'],
  signal: AbortSignal,
): Promise<boolean> {
  const { slot, generation, revision, checks, rules, as, onFailure } = args;
  const { report, problem } = await reportOn(evaluation, args, signal);
  if (signal.aborted) return false;
  if (as === 'baseline') {
    source?.settle?.(slot, { kind: 'baseline', generation, revision, checks: checks.digest, report });
    return true;
  }
  const { accepted, because } = problem === undefined ? judgeReport(report, rules) : { accepted: false, because: problem };
  const misses = accepted ? [] : [...report.misses];
  const score =
    accepted || problem !== undefined ? undefined : { ...countsOf(report), before: rules.compare ? countsOf(rules.compare.report) : null };
  const verdict = { outcome: accepted ? 'passed' : onFailure, revision, checks: checks.digest, because, misses, score } as const;
  source?.settle?.(slot, { kind: 'verdict', generation, verdict });
  return true;
}

const countsOf = ({ cases, passed }: EvaluationReport) => ({ cases, passed });

async function reportOn(evaluation: Evaluation | undefined, args: ActionArgs['evaluate'], signal: AbortSignal) {
  const none = { cases: args.checks.cases.length, passed: 0, misses: [], firstTokenP95: undefined, tokensPerSecond: undefined };
  if (evaluation === undefined) return { report: none, problem: 'This service cannot ask models: remove the cases' };
  try {
    return { report: await evaluation(args, args.checks.cases, signal) };
  } catch (error) {
    return { report: none, problem: `The cases could not be asked: ${messageOf(error)}` };
  }
}
