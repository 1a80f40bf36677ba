/**
 * What a slot does with a new model that is judged by cases before it gets requests:
 *
 *     both are compared           the accepted model answers the cases first, and nothing is started meanwhile
 *     the new one passes its probe   it is "starting" and answers the cases; the old one serves if it runs
 *     verdict "passed"            it serves, and its text becomes the accepted one
 *     verdict "held"              it stays loaded without requests, as long as the old one serves
 *     it cannot start or be judged   rolled back, like a model that fails
 *     it serves, is watched and fails   rolled back
 *
 * Pure.
 */
import { parseDurationMs } from '../../../schema/words/quantities.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { AttemptKind } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Gate } from './gates.ts';
import { isPassing } from './workload-faults.ts';

/** Whether a workload that answers may get requests. */
export function mayServe({ fact: { id, revision }, standing }: WorkloadView, { slot: { rollout }, lastServing }: SlotView): boolean {
  const { accepted, verdict, rolledBack, isOnTrial } = rollout ?? {};
  if (accepted === undefined || revision === accepted.revision) return true;
  const judged = verdict?.revision === revision ? verdict.outcome : undefined;
  if (judged === 'held' || revision === rolledBack?.verdict.revision) return false;
  // What served in the last pass has passed as well, and nothing may know of it yet.
  if (standing === 'outdated') return lastServing === id;
  return isOnTrial !== true || judged === 'passed';
}

/** It has failed, and stays loaded. */
export function isHeld({ fact }: WorkloadView, { slot: { rollout } }: SlotView): boolean {
  return rollout?.isOnTrial === true && rollout.verdict?.outcome === 'held' && rollout.verdict.revision === fact.revision;
}

/** It could answer requests, and is judged first. */
export function isJudged(workload: WorkloadView, view: SlotView): boolean {
  return isPassing(workload, view) && workload.fact.endpoints.length > 0 && !mayServe(workload, view) && !isHeld(workload, view);
}

export const COMPARING: Finding = {
  reason: 'Evaluating',
  message: 'The present model answers the cases of "rollout", with which the new one is compared',
};

/** Whether the accepted model has yet to answer the cases that a new one is compared by. */
export function lacksBaseline(workload: WorkloadView, { slot: { rollout }, spec, leads, ...view }: SlotView): boolean {
  const { accepted, checks, isOnTrial } = rollout ?? {};
  if (!leads || isOnTrial !== true || spec.rollout?.compare !== true || checks === undefined) return false;
  if (workload.fact.revision !== accepted?.revision || workload.known.drainingSince !== undefined) return false;
  return accepted.baseline?.checks !== checks.digest && view.workloads.every(({ alive, standing }) => !alive || standing === 'outdated');
}

/** What the slot says about a model that is judged, or that has failed; undefined where there is nothing to say. */
export function describeTrial(view: SlotView, starting: WorkloadView | undefined): Finding | undefined {
  const { rolledBack, verdict, isOnTrial } = view.slot.rollout ?? {};
  if (rolledBack !== undefined) {
    const fix = 'edit the slot or its cases to try again, or run "svcctl rollout undo"';
    return { reason: 'RolledBack', message: `The last edit was rolled back: ${rolledBack.verdict.because}; ${fix}` };
  }
  if (isOnTrial !== true) return undefined;
  if (verdict?.outcome === 'held')
    return { reason: 'EvaluationFailed', message: `The new model gets no requests: ${verdict.because}; edit the slot, or its cases` };
  if (starting === undefined || !isJudged(starting, view)) return undefined;
  return { reason: 'Evaluating', message: 'The new model answers the cases of "rollout" before it gets requests' };
}

/** Until when the model is watched, in monotonic milliseconds; undefined if it is not. */
export function watchedUntil({ slot: { rollout }, spec }: SlotView): number | undefined {
  const since = rollout?.isOnTrial === false ? rollout.watched?.since : undefined;
  const { watch } = spec.rollout ?? {};
  return since === undefined ? undefined : since + (watch === undefined ? 0 : parseDurationMs(watch));
}

export function describeWatch(view: SlotView): Finding | undefined {
  const until = watchedUntil(view);
  if (until === undefined || until <= view.now) return undefined;
  const message = `The new model is watched for ${view.spec.rollout?.watch ?? ''} from its first answer on: if it fails, the text before is in force again`;
  return { reason: 'Watched', message };
}

/** Others have causes outside of the model: a workload that was removed, an image that cannot be pulled. */
const OWN_FAULTS: ReadonlySet<AttemptKind> = new Set(['crash', 'probe', 'start-timeout']);
/** One request fails for many reasons. */
const FAILED_REQUESTS = 5;
const FAILED_SHARE = 0.1;

/** Why a model that is watched is rolled back; undefined where it is not. */
export function whyWatchFails(view: SlotView): Finding | undefined {
  const { slot, spec, failures, workloads, now, leads } = view;
  const since = slot.rollout?.watched?.since ?? 0;
  if (!leads || (watchedUntil(view) ?? 0) <= now) return undefined;
  const failed = (reason: Finding['reason'], message: string): Finding => ({
    reason,
    message: `It was watched for ${spec.rollout?.watch ?? ''} ("watch"): ${message}`,
  });
  const fault = failures.find(({ at, kind }) => at >= since && OWN_FAULTS.has(kind));
  if (fault !== undefined) return failed(fault.failure.reason, fault.failure.message);
  for (const { standing, known, ended = 0, failed: count = 0 } of workloads) {
    if (standing === 'outdated') continue;
    if (known.probe?.status === 'nonsense') return failed('ModelAnswersNonsense', known.probe.message);
    if (count >= FAILED_REQUESTS && count > ended * FAILED_SHARE)
      return failed('RequestsFailed', `Its server failed ${count} of ${ended} requests`);
  }
  return undefined;
}

/** Requests wait meanwhile, and the old model could answer them. A second start rules out a fluke. */
const FAILED_STARTS = 2;

interface Obstacles {
  readonly serving: WorkloadView | undefined;
  readonly starting: WorkloadView | undefined;
  /** Why the slot should not run now, other than for its memory. */
  readonly notWanted: Finding | undefined;
  readonly gates: readonly (Gate | undefined)[];
}

/** Why a text on trial, or one that is watched, is rolled back without answers to cases; undefined where it is not. */
export function whyTrialEnds(view: SlotView, { serving, starting, notWanted, gates }: Obstacles): Finding | undefined {
  const failed = whyWatchFails(view);
  if (failed !== undefined) return failed;
  const { isOnTrial, accepted, verdict, checks } = view.slot.rollout ?? {};
  if (isOnTrial !== true || notWanted !== undefined || !view.leads) return undefined;
  const oldRuns = view.workloads.some(({ alive, fact }) => alive && fact.revision === accepted?.revision);
  const stuck = gates.find((gate) => gate?.kind === 'stalled' || gate?.kind === 'memory');
  // The old model keeps its memory, unless others need that too.
  if (stuck?.kind === 'memory') return oldRuns ? stuck : undefined;
  if (stuck !== undefined && (serving === undefined || view.failures.length > 0)) return stuck;
  if (serving !== undefined || oldRuns) return undefined;
  const last = view.failures.at(-1);
  if (last !== undefined && view.failures.length >= FAILED_STARTS) return last.failure;
  if (verdict?.outcome === 'held') return { reason: 'EvaluationFailed', message: verdict.because };
  const isReady = starting !== undefined && isJudged(starting, view);
  return isReady && checks === undefined ? { reason: 'SpecInvalid', message: 'The cases of "rollout" cannot be read' } : undefined;
}
