/**
 * What is done about a workload that somebody altered, in one of two ways: it is updated in place where its runtime can do so, and replaced otherwise.
 *
 *     "drift" is "repair"           repaired without end, with the back-off of failures, however often it is altered again
 *     "drift" is "warn", "ignore"   left as it is
 *     it keeps the slot from        stalled: at once where it is left as it is, and once the back-off has reached its longest
 *     answering                     delay where it is repaired, because then somebody must stop who alters it
 *
 * Pure.
 */
import type { Finding, Failure } from '../../../schema/words/failure.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Attempt } from '../facts/facts.ts';

/** When an altered workload is repaired next, in monotonic milliseconds; undefined where it is not repaired. */
export function nextRepairAt({ spec, repairs, now }: SlotView): number | undefined {
  if (spec.lifecycle.drift !== 'repair') return undefined;
  return repairs === undefined ? now : repairs.lastAt + delayAfter(repairs.times);
}

/** Whether an altered workload is repaired now, and not only reported. */
export function repairsDrift(view: SlotView): boolean {
  const at = nextRepairAt(view);
  return at !== undefined && at <= view.now;
}

/** What was altered, and how often that was repaired. The message stays the same until the next repair. */
export function describeAltered({ drift }: Pick<WorkloadView, 'drift'>, view: SlotView): Finding {
  return { reason: 'WorkloadAltered', message: `The workload was altered from outside: ${drift.join('; ')}${repairsText(view)}` };
}

/** Why the slot does not answer though its workload was or is repaired, or must not be; undefined where nobody has to act. */
export function findUnrepairable(
  view: SlotView,
  { serving, starting }: { readonly serving: WorkloadView | undefined; readonly starting: WorkloadView | undefined },
): Finding | undefined {
  if (serving !== undefined || starting === undefined) return undefined;
  const { repairs, spec } = view;
  const altered = starting.standing === 'altered';
  if (spec.lifecycle.drift !== 'repair') {
    if (!altered || !isScaledToZero(starting)) return undefined;
    const message = `Undo the change, or set "drift" to "repair": ${describeAltered(starting, view).message}`;
    return { reason: 'WorkloadAltered', message };
  }
  if (repairs === undefined || delayAfter(repairs.times) < LONGEST_DELAY_MS) return undefined;
  const what = altered ? starting.drift.join('; ') : 'it does not last';
  const message = `Find out what alters the workload, and stop it: ${what}${repairsText(view)}`;
  return { reason: 'WorkloadAltered', message };
}

function repairsText({ repairs, spec }: SlotView): string {
  if (repairs === undefined || spec.lifecycle.drift !== 'repair') return '';
  const pause = delayAfter(repairs.times) / 1000;
  return `; it was repaired ${repairs.times === 1 ? 'once' : `${repairs.times} times`}, and the next repair waits ${pause} s after the last one`;
}

/** It has no process, waits for nothing, and nothing will ever start one. */
function isScaledToZero({ fact }: WorkloadView): boolean {
  return fact.phase === 'created' && fact.replicas?.present === 0 && fact.waitingReason === undefined;
}

/** When the next attempt may be made, and when there is none any more. Pure. */

/** The delay doubles from the first to the longest: long enough to spare a broken machine, short enough that a repair shows soon. */
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 300_000;
/** So many crashes within the window are a crash loop: the slot stalls. */
export const CRASH_LIMIT = 5;
export const CRASH_WINDOW_MS = 600_000;
/** It costs nothing to try another port, so that the next one is tried at once; but only so often, as the ports may fail for another reason. */
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

/** The last failure after which somebody must act; a failed pull no longer counts once its image or model is present. */
export function finalFailure(
  failures: readonly Attempt[],
  present: { readonly image: boolean; readonly model: boolean },
): Failure | undefined {
  const attempt = failures.findLast(
    ({ kind, failure }) =>
      failure.kind === 'stalled' && !(kind === 'pull-image' && present.image) && !(kind === 'pull-model' && present.model),
  );
  return attempt?.failure;
}

function isPortTaken({ failure }: Attempt): boolean {
  return failure.reason === 'PortTaken';
}
