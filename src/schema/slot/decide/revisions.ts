/** What became of the revisions of a slot, which of them are removed, and what an undo writes. Pure. */
import { tableAt } from '../../pod/kube-fields.ts';
import { isSameValue } from '../../words/same-value.ts';
import type { SlotStatus } from '../../status/slot-status.ts';
import type { Revision, RevisionOutcome } from '../revision-store.ts';

/** What a status says of the revision that is the newest; undefined if the status is about another one. */
export function outcomeOf({ conditions }: Pick<SlotStatus, 'conditions'>, number: number): RevisionOutcome | undefined {
  const statusOf = (type: string) =>
    conditions.find((each) => each.type === type && each.observedGeneration >= number && each.reason !== 'Paused')?.status;
  if (
    conditions.some(({ type, reason, observedGeneration }) => type === 'Stalled' && reason === 'RolledBack' && observedGeneration >= number)
  )
    return 'rolled_back';
  const [upToDate, ready] = [statusOf('UpToDate'), statusOf('Ready')];
  if (upToDate !== 'True') return upToDate && 'pending';
  return ready === 'True' ? 'served' : 'at_rest';
}

const RANKS: Readonly<Partial<Record<RevisionOutcome, number>>> = { at_rest: 1, served: 2 };

/** A revision that has served once has served, unless it is rolled back; other cases may let it serve then. */
export const betterOutcome = (before: RevisionOutcome, after: RevisionOutcome = 'pending'): RevisionOutcome =>
  after === 'rolled_back' || (RANKS[after] ?? 0) > (RANKS[before] ?? 0) ? after : before;

/** The revisions with what the later ones say of the earlier ones. Oldest first, each text once in a row. */
export function settleOutcomes(revisions: readonly Revision[]): readonly Revision[] {
  const joined = joinRepeated(revisions.toSorted((left, right) => left.number - right.number));
  return joined.map((revision, index) => {
    const next = joined[index + 1];
    if (next === undefined) return revision;
    if (next.undoOf !== undefined) return { ...revision, outcome: 'rolled_back' };
    return revision.outcome === 'pending' ? { ...revision, outcome: 'never_ready' } : revision;
  });
}

/** Scaling a slot makes no revision, as for Deployments, and neither do a pause and its end. */
function joinRepeated(sorted: readonly Revision[]): readonly Revision[] {
  const joined: Revision[] = [];
  for (const revision of sorted) {
    const before = joined.at(-1);
    if (before === undefined || !isSameValue(essenceOf(before), essenceOf(revision))) joined.push(revision);
    // An undo must bring back the cases that were added meanwhile.
    else joined[joined.length - 1] = { ...before, document: revision.document, outcome: betterOutcome(before.outcome, revision.outcome) };
  }
  return joined;
}

const essenceOf = ({ document }: Revision): Document => ({ ...document, replicas: undefined, rollout: undefined });

/** The numbers of those that are too many, the oldest ones. */
export const findSurplus = (numbers: readonly number[], most: number): readonly number[] =>
  numbers.toSorted((left, right) => right - left).slice(most);

type Document = Readonly<Record<string, unknown>>;

export type Undo =
  /** `document`: what to write in place of the present one. */
  | { readonly kind: 'write'; readonly revision: Revision; readonly document: Document }
  /** The present document means the same already. */
  | { readonly kind: 'same'; readonly revision: Revision }
  | { readonly kind: 'refused'; readonly message: string };

/**
 * `to`: the number of a revision. Default: the last one before the present one that served and says something else, so
 * that repeated undos go further back. What does not belong to a revision stays: when the slot was restarted last, that
 * rollouts are paused, and the number of replicas where autoscalers may set it.
 */
export function planUndo(revisions: readonly Revision[], present: Document, to?: number): Undo {
  const current = revisions.at(-1)?.number ?? 0;
  const wanted = to ?? revisions.findLast((each) => each.number < current && each.outcome === 'served' && !means(each, present))?.number;
  const known = revisions.map(({ number }) => number).join(', ');
  if (wanted === undefined) {
    const choice = known === '' ? 'no revision is kept' : `name one of the revisions ${known}`;
    return { kind: 'refused', message: `No earlier revision has served with another spec: ${choice}` };
  }
  const revision = revisions.find(({ number }) => number === wanted);
  if (revision === undefined)
    return { kind: 'refused', message: `Revision ${wanted} is not kept: ${known === '' ? 'none is' : `the revisions are ${known}`}` };
  return means(revision, present) ? { kind: 'same', revision } : { kind: 'write', revision, document: withOwn(revision, present) };
}

const means = (revision: Revision, present: Document): boolean => isSameValue(withOwn(revision, present), present);

function withOwn({ document }: Revision, present: Document): Document {
  const own = { restartedAt: present['restartedAt'], replicas: present['replicas'], rollout: rolloutOf(document, present) };
  return Object.fromEntries(Object.entries({ ...document, ...own }).filter(([, value]) => value !== undefined));
}

/** Only `paused` is the present one. */
function rolloutOf(document: Document, present: Document): unknown {
  const { paused: _paused, ...earlier } = tableAt(document, 'rollout');
  const { paused } = tableAt(present, 'rollout');
  const rollout = paused === undefined ? earlier : { ...earlier, paused };
  return Object.keys(rollout).length === 0 ? undefined : rollout;
}
