/**
 * The order in which a round measures its subjects. Each of them takes every place as often as the others: the one that ran last before finds a machine that is warm for it, which is worth some
 * percent. Every second round goes backwards, so that a machine that becomes slower affects all of them alike. Pure. `round`: an integer, also below 0.
 */
export function orderOfRound<T>(subjects: readonly T[], round: number): readonly T[] {
  const begun = rotate(subjects, Math.floor(round / 2));
  return round % 2 === 0 ? begun : rotate(begun.toReversed(), Math.floor(subjects.length / 2));
}

function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const first = ((by % items.length) + items.length) % items.length || 0;
  return [...items.slice(first), ...items.slice(0, first)];
}
