/** When the next attempt may be made, and when there is none any more. Pure. */
import type { Failure } from '../../../schema/words/failure.ts';
import type { Attempt } from '../facts/facts.ts';

/** The delay doubles up to the longest: it spares a broken machine, and a repair still shows soon. */
const FIRST_DELAY_MS = 1000;
export const LONGEST_DELAY_MS = 300_000;
/** So many crashes within the window are a crash loop: the slot stalls. */
export const CRASH_LIMIT = 5;
export const CRASH_WINDOW_MS = 600_000;
/** Another port costs nothing, so it is tried at once; but only so often, as ports may fail for another reason. */
const FREE_PORT_TRIES = 8;
/** After so long without a failure, a ready slot forgets its earlier failures. */
export const STABLE_MS = 600_000;

/** The delay after so many failures in a row. */
export function delayAfter(failures: number): number {
  if (failures <= 0) return 0;
  return Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 30), LONGEST_DELAY_MS);
}

/** When the next attempt may be made, in monotonic milliseconds; undefined where it may be made at any time. */
export function nextAttemptAt(failures: readonly Attempt[]): number | undefined {
  const last = failures.at(-1);
  if (last === undefined) return undefined;
  if (last.failure.kind === 'waiting') return last.failure.until ?? last.at + FIRST_DELAY_MS;
  const portsTaken = failures.length - 1 - failures.findLastIndex((attempt) => !isPortTaken(attempt));
  if (portsTaken > 0 && portsTaken <= FREE_PORT_TRIES) return undefined;
  const counted = failures.filter((attempt) => !isPortTaken(attempt)).length;
  return last.at + delayAfter(counted + Math.max(0, portsTaken - FREE_PORT_TRIES));
}

/** Remains true until the failures are forgotten: the window slides over the failures, and does not end now. */
export function isCrashLoop(failures: readonly Attempt[]): boolean {
  if (failures.length < CRASH_LIMIT) return false;
  const crashes = failures.filter(({ kind }) => kind === 'crash' || kind === 'probe' || kind === 'start-timeout');
  return crashes.some((crash, index) => {
    const last = crashes[index + CRASH_LIMIT - 1];
    return last !== undefined && last.at - crash.at <= CRASH_WINDOW_MS;
  });
}

/** The last failure that requires a user; a failed pull no longer counts once its image or model is present. */
export function finalFailure(
  failures: readonly Attempt[],
  present: { readonly image: boolean; readonly model: boolean },
): Failure | undefined {
  const attempt = failures.findLast(
    ({ kind, failure }) =>
      failure.kind === 'stalled' &&
      failure.reason !== 'LicenseNotAccepted' &&
      !(kind === 'pull-image' && present.image) &&
      !(kind === 'pull-model' && present.model),
  );
  return attempt?.failure;
}

const isPortTaken = ({ failure }: Attempt): boolean => failure.reason === 'PortTaken';
