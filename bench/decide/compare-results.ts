/** Compares the ratios of a result with those of an earlier one. Absolute figures are not compared, since the speed of a machine drifts from day to day. Pure. */
import type { Goal, Result } from './result.ts';
import { voidText } from './summarise.ts';

/** Two runs on a quiet machine differ by up to 5 %, and a shared machine is rarely quiet. */
export const TOLERANCE = 0.1;

export interface Comparison {
  /** How many ratios were compared. */
  readonly compared: number;
  /** One line for each ratio that is worse than the tolerance allows, or that has failed requests now. */
  readonly regressions: readonly string[];
  /** One line for each ratio of the earlier result that has no valid value now. */
  readonly missing: readonly string[];
}

type Measurements = Result['measurements'];

/** Only measurements that `now` contains are compared. */
export function compareResults(before: Measurements, now: Measurements): Comparison {
  const pairs = Object.entries(now).flatMap(([name, { goals }]) =>
    (before[name]?.goals ?? [])
      .filter((earlier) => earlier.unit === '×' && earlier.value !== undefined)
      .map((earlier) => ({ what: `${name}: ${earlier.what}`, earlier, later: goals.find(({ what }) => what === earlier.what) })),
  );
  const found = pairs.map(({ what, earlier, later }) => ({ what, ...verdictOf(earlier, later) }));
  const linesOf = (wanted: Kind): readonly string[] =>
    found.filter(({ kind }) => kind === wanted).map(({ what, because }) => `${what}: ${because}`);
  return {
    compared: found.filter(({ kind }) => kind !== 'missing').length,
    regressions: [...linesOf('worse'), ...failuresOf(now)],
    missing: linesOf('missing'),
  };
}

type Kind = 'same' | 'worse' | 'missing';

function verdictOf(earlier: Goal, later: Goal | undefined): { readonly kind: Kind; readonly because: string } {
  if (later?.value === undefined || earlier.value === undefined) return { kind: 'missing', because: later?.figure ?? 'not measured' };
  const { value } = later;
  const bound = earlier.better === 'lower' ? earlier.value * (1 + TOLERANCE) : earlier.value * (1 - TOLERANCE);
  const isWorse = earlier.better === 'lower' ? value > bound : value < bound;
  if (!isWorse) return { kind: 'same', because: '' };
  const relation = earlier.better === 'lower' ? 'at most' : 'at least';
  return {
    kind: 'worse',
    because: `${value.toFixed(2)} ×, and was ${earlier.value.toFixed(2)} × (${relation} ${bound.toFixed(2)} × would be accepted)`,
  };
}

function failuresOf(now: Measurements): readonly string[] {
  return Object.entries(now).flatMap(([name, { tables }]) =>
    tables.flatMap(({ title, rows }) =>
      rows
        .filter(({ validity }) => validity === 'void')
        .map((row) => `${name}: ${title}: through "${row.name}", ${voidText(row.failures)}`),
    ),
  );
}
