/** When the next attempt may be made, and when there shall be none. Pure. */
import type { Attempt } from '../facts/facts.ts';

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 300_000;
const CRASH_LIMIT = 5;
const CRASH_WINDOW_MS = 600_000;
/** A port that is taken costs nothing to avoid, so the next one is tried at once; but not for ever, lest every port "is taken" for another reason. */
const FREE_PORT_TRIES = 8;
/** A repair that does not hold is either a fight with somebody or our own misreading: twice is enough. */
export const DRIFT_REPAIR_LIMIT = 3;
/** Ready for this long: the failures before are forgotten. */
export const STABLE_MS = 600_000;

/** The delay after so many failures in a row: 1 s doubling to 5 min. */
export function delayAfter(failures: number): number {
  if (failures <= 0) return 0;
  return Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 30), LONGEST_DELAY_MS);
}

/** Unix milliseconds before which nothing may be tried; undefined when something may be tried at any time. */
export function nextAttemptAt(failures: readonly Attempt[]): number | undefined {
  if (failures.length === 0) return undefined;
  const last = failures.findLast((attempt) => attempt.kind !== 'drift');
  if (last === undefined) return undefined;
  if (last.failure.kind === 'waiting') return last.failure.until ?? last.at + FIRST_DELAY_MS;
  const portsTaken = trailingPortsTaken(failures);
  if (portsTaken > 0 && portsTaken <= FREE_PORT_TRIES) return undefined;
  const counted = failures.filter((attempt) => attempt.kind !== 'drift' && attempt.failure.reason !== 'PortTaken').length;
  return last.at + delayAfter(counted + Math.max(0, portsTaken - FREE_PORT_TRIES));
}

/** Whether the slot crashes again and again. Stays so until its failures are forgotten: the window slides over them, not over now. */
export function isCrashLoop(failures: readonly Attempt[]): boolean {
  if (failures.length < CRASH_LIMIT) return false;
  const crashes = failures.filter(({ kind }) => kind === 'crash' || kind === 'probe' || kind === 'start-timeout');
  return crashes.some((crash, index) => {
    const fifth = crashes[index + CRASH_LIMIT - 1];
    return fifth !== undefined && fifth.at - crash.at <= CRASH_WINDOW_MS;
  });
}

/** The failure that only a person can mend; those of a pull are over once the thing is there. */
export function finalFailure(
  failures: readonly Attempt[],
  present: { readonly image: boolean; readonly model: boolean },
): Attempt | undefined {
  if (failures.length === 0) return undefined;
  return failures.findLast(
    ({ kind, failure }) =>
      failure.kind === 'stalled' && !(kind === 'pull-image' && present.image) && !(kind === 'pull-model' && present.model),
  );
}

export function driftRepairs(failures: readonly Attempt[]): number {
  return failures.filter(({ kind }) => kind === 'drift').length;
}

function trailingPortsTaken(failures: readonly Attempt[]): number {
  const attempts = failures.filter(({ kind }) => kind !== 'drift');
  const other = attempts.findLastIndex(({ failure }) => failure.reason !== 'PortTaken');
  return attempts.length - 1 - other;
}
