/** Which model gave the better answer, as the user of this browser judged. Pure. */
import { isTable } from './patch.ts';
import { at, parseJson } from './untrusted.ts';

export interface Score {
  readonly model: string;
  readonly wins: number;
  /** Comparisons that it took part in and that were judged. */
  readonly judged: number;
}

/** The best share first. */
export function addVote(scores: readonly Score[], compared: readonly string[], winner: string): readonly Score[] {
  const added = [...new Set(compared)].map((model): Score => {
    const { wins, judged } = scores.find((score) => score.model === model) ?? { wins: 0, judged: 0 };
    return { model, wins: wins + (model === winner ? 1 : 0), judged: judged + 1 };
  });
  const others = scores.filter(({ model }) => !compared.includes(model));
  return [...others, ...added].sort((one, other) => shareOf(other) - shareOf(one) || other.judged - one.judged);
}

const shareOf = ({ wins, judged }: Score): number => (judged === 0 ? 0 : wins / judged);

/** Reads a text that somebody else may have written. */
export function readScores(text: string): readonly Score[] {
  const scores = parseJson(text);
  if (!Array.isArray(scores)) return [];
  return scores.filter(
    (score): score is Score =>
      isTable(score) &&
      typeof at(score, 'model') === 'string' &&
      Number.isInteger(at(score, 'wins')) &&
      Number.isInteger(at(score, 'judged')),
  );
}
