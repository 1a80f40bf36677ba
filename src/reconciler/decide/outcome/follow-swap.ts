/**
 * Answers the question: has a swap begun or ended? Compares which revision answered last with the one that is wanted and the one that answers now. Restarts of
 * one revision, updates in place, and slots that were at rest in between are no swaps. Pure.
 *
 *     answered last   wanted   answers now    entry
 *     a               a        a, or nothing  none
 *     a               b        a, or nothing  the swap has begun, once for each b
 *     a               b        b              the swap has ended
 */
import type { ModelId, Revision } from '../../../schema/words/names.ts';
import type { Decision } from '../facts/facts.ts';
import type { NewEntry } from './published-status.ts';

/** What is remembered of a slot between passes. */
export interface SwapProgress {
  /** Undefined before anything has answered, and while the slot is at rest. */
  readonly answered: Answering | undefined;
  /** The revision whose swap has been announced. */
  readonly announced: Revision | undefined;
}

interface Answering {
  /** Undefined for one from before an edit that this controller found so. */
  readonly revision: Revision | undefined;
  readonly model: ModelId;
}

export const NO_SWAP: SwapProgress = { answered: undefined, announced: undefined };

/** `model`: the one that answers now; while none does, the wanted one. */
export function followSwap(
  before: SwapProgress,
  decision: Decision,
  model: { readonly now: ModelId; readonly wanted: ModelId },
): { readonly progress: SwapProgress; readonly entries: readonly NewEntry[] } {
  const { wanted, revision, serving, conditions } = decision;
  if (!wanted) return { progress: NO_SWAP, entries: [] };
  const ready = conditions.find(({ type }) => type === 'Ready');
  const isHeldUp = conditions.some(({ type, reason }) => type === 'Stalled' && reason === 'InternalError');
  if (revision === undefined || isHeldUp) return { progress: before, entries: [] };
  if (serving !== undefined && ready?.reason === 'ProbePassed') {
    const ended = before.answered !== undefined && before.answered.revision !== revision;
    const progress = { answered: { revision, model: model.now }, announced: undefined };
    return { progress: isSame(progress, before) ? before : progress, entries: ended ? [endOf(before.answered.model, model.now)] : [] };
  }
  const foundSo = serving !== undefined && ready?.reason === 'PreviousServes' ? { revision: undefined, model: model.now } : undefined;
  const answered = before.answered ?? foundSo;
  if (answered === undefined || answered.revision === revision || before.announced === revision) return { progress: before, entries: [] };
  return { progress: { answered, announced: revision }, entries: [beginningOf(answered.model, model.wanted)] };
}

function beginningOf(old: ModelId, next: ModelId): NewEntry {
  const message = old === next ? `A new server of model "${next}" replaces the present one` : `Model "${next}" replaces model "${old}"`;
  return { kind: 'swap', message, cause: 'SwapStarted' };
}

function endOf(old: ModelId, next: ModelId): NewEntry {
  const message = old === next ? `A new server of model "${next}" answers now` : `Model "${next}" answers now instead of model "${old}"`;
  return { kind: 'swap', message, cause: 'SwapFinished' };
}

function isSame({ answered, announced }: SwapProgress, before: SwapProgress): boolean {
  return announced === before.announced && answered?.revision === before.answered?.revision && answered?.model === before.answered?.model;
}
