/** Collects one row per case, for the table that the run prints and `docs/reliability.md` shows. */
import { appendFileSync } from 'node:fs';
import { refusals, type Score } from './load.ts';

export interface CaseRow {
  readonly runtime: string;
  readonly name: string;
  readonly times: number;
  readonly requests: number;
  readonly answered: number;
  /** Lost: wrong answers, and refusals that the case does not expect. */
  readonly lost: number;
  readonly refused: number;
  readonly cut: number;
  readonly disconnected: number;
  readonly slowestMs: number;
}

export interface Expected {
  /** Refusals that are right, such as `503 slot.disabled`. */
  readonly refusals?: readonly string[];
}

/** Returns what was lost, one line each; the caller expects none. */
export function reportCase(
  { runtime, name, times }: Pick<CaseRow, 'runtime' | 'name' | 'times'>,
  score: Score,
  { refusals: expected = [] }: Expected = {},
): readonly string[] {
  const unexpected = refusals(score).filter((reason) => !expected.includes(reason));
  const lost = [...score.wrong, ...unexpected.map((reason) => `${score.refused.get(reason)} × ${reason}`)];
  const lostCount = score.wrong.length + unexpected.reduce((sum, reason) => sum + (score.refused.get(reason) ?? 0), 0);
  const refused = [...score.refused.values()].reduce((sum, number) => sum + number, 0) - (lostCount - score.wrong.length);
  const { requests, answered, cut, disconnected } = score;
  const row: CaseRow = {
    runtime,
    name,
    times,
    requests,
    answered,
    lost: lostCount,
    refused,
    cut,
    disconnected,
    slowestMs: Math.round(score.slowestMs),
  };
  const file = process.env['SVC_TEST_ROWS'];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(row)}\n`);
  return lost;
}
