/**
 * Leader election: what one candidate knows about the Lease, and its next step. Clocks are never compared: a holder
 * counts from before it sent its last renewal, the others from when they observed it. So the term of the holder has
 * ended when others may acquire the lease, whatever the clocks show. Pure.
 *
 * After a Lease was deleted, nobody can see who held it. So the holder of a new Lease waits for longer than the term of
 * the deleted one can last.
 */
import { isHeldBy, isReleased, isSameRecord, type LeaseRecord } from './lease-record.ts';

export type LeaseTimes = Readonly<ReturnType<typeof leaseTimes>>;

export interface Candidate {
  readonly holder: string;
  /** Identifies this process: an earlier process may have had the same name. */
  readonly instance: string;
  readonly times: LeaseTimes;
  readonly observed: LeaseRecord | 'absent' | 'unknown';
  readonly observedAt: number;
  readonly lastContactAt: number;
  /** When the last successful renewal was sent; undefined without a lease that this candidate knows to be its own. */
  readonly renewedAt: number | undefined;
  readonly leadsFrom: number;
  /** The outcome of a write is unknown, or there was a conflict. */
  readonly mustObserve: boolean;
  readonly failures: number;
  readonly retryAt: number;
}

export type LeaseStep =
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'observe' }
  | { readonly kind: 'acquire'; readonly before: LeaseRecord | undefined }
  | { readonly kind: 'renew'; readonly before: LeaseRecord };

export type LeaseWriteStep = Extract<LeaseStep, { kind: 'acquire' | 'renew' }>;

/** A longer duration in a Lease is a mistake, unless it is our own. */
const LONGEST_FOREIGN_DURATION_MS = 10 * 60_000;

export function leaseTimes(durationMs: number) {
  return {
    durationMs,
    renewMs: durationMs / 4,
    /** The rest of the duration is a margin for clock drift and for writes in flight. */
    renewDeadlineMs: (durationMs * 2) / 3,
    /** The holder of a Lease that was just created leads after this delay. */
    createdDelayMs: (durationMs * 3) / 4,
    requestTimeoutMs: durationMs / 5,
    retryMs: durationMs / 20,
    longestRetryMs: durationMs / 4,
    watchSilenceMs: durationMs / 2,
  };
}

export function newCandidate(holder: string, instance: string, times: LeaseTimes): Candidate {
  return {
    holder,
    instance,
    times,
    observed: 'unknown',
    observedAt: 0,
    lastContactAt: 0,
    renewedAt: undefined,
    leadsFrom: 0,
    mustObserve: false,
    failures: 0,
    retryAt: 0,
  };
}

export function nextStep(candidate: Candidate, now: number): LeaseStep {
  const { observed, times, retryAt } = candidate;
  if (now < retryAt) return { kind: 'wait', until: retryAt };
  if (observed === 'unknown' || candidate.mustObserve) return { kind: 'observe' };
  if (observed === 'absent') return { kind: 'acquire', before: undefined };
  if (holdsLease(candidate)) {
    const renewAt = (candidate.renewedAt ?? Number.NEGATIVE_INFINITY) + times.renewMs;
    return now >= renewAt ? { kind: 'renew', before: observed } : { kind: 'wait', until: renewAt };
  }
  const expiresAt = expiryOf(candidate, observed);
  if (now >= expiresAt) return { kind: 'acquire', before: observed };
  const silentAt = candidate.lastContactAt + times.watchSilenceMs;
  return now >= silentAt ? { kind: 'observe' } : { kind: 'wait', until: Math.min(expiresAt, silentAt) };
}

/** Whether this process holds the lease, as far as it knows. A holder is not always the leader. */
export function holdsLease({ observed, holder, instance }: Candidate): boolean {
  return typeof observed === 'object' && isHeldBy(observed, { holder, instance });
}

export function termOf(candidate: Candidate): { readonly from: number; readonly until: number } | undefined {
  const { renewedAt, leadsFrom, times } = candidate;
  if (renewedAt === undefined || !holdsLease(candidate)) return undefined;
  return { from: leadsFrom, until: renewedAt + times.renewDeadlineMs };
}

export function leadsAt(candidate: Candidate, now: number): boolean {
  const term = termOf(candidate);
  return term !== undefined && now >= term.from && now < term.until;
}

export function afterObservation(candidate: Candidate, observed: LeaseRecord | 'absent', now: number): Candidate {
  const next = { ...candidate, lastContactAt: now, mustObserve: false, failures: 0, retryAt: 0 };
  const before = candidate.observed;
  if (typeof observed === 'object' && typeof before === 'object' && isSameRecord(before, observed)) return { ...next, observed };
  const changed: Candidate = { ...next, observed, observedAt: now };
  if (!holdsLease(changed)) return { ...changed, renewedAt: undefined };
  if (holdsLease(candidate) && uidOf(before) === uidOf(observed)) return changed;
  // The response to a write was lost, so this candidate does not know whether it created the Lease.
  return { ...changed, leadsFrom: now + changed.times.createdDelayMs };
}

/** After a watch event. A holder ignores it, since events of its own writes arrive late. */
export function afterWatchEvent(candidate: Candidate, observed: LeaseRecord | 'absent', now: number): Candidate {
  if (holdsLease(candidate)) return candidate;
  const { mustObserve, failures, retryAt } = candidate;
  return { ...afterObservation(candidate, observed, now), mustObserve, failures, retryAt };
}

export function afterWrite(
  candidate: Candidate,
  step: LeaseWriteStep,
  { record, sentAt, now }: { readonly record: LeaseRecord; readonly sentAt: number; readonly now: number },
): Candidate {
  const observed = { observed: record, observedAt: now, lastContactAt: now };
  const next = { ...candidate, ...observed, renewedAt: sentAt, mustObserve: false, failures: 0, retryAt: 0 };
  if (step.kind === 'renew') return next;
  return { ...next, leadsFrom: step.before === undefined ? now + candidate.times.createdDelayMs : now };
}

/** After a write that another candidate forestalled. `random` in [0, 1) spreads the candidates. */
export function afterConflict(candidate: Candidate, now: number, random: number): Candidate {
  return { ...candidate, mustObserve: true, retryAt: now + (candidate.times.retryMs * random) / 4 };
}

/** After a request with an unknown outcome. A leader retries soon to keep its term; the delay of the others grows. */
export function afterFailure(candidate: Candidate, now: number, random: number): Candidate {
  const { times } = candidate;
  const failures = candidate.failures + 1;
  const grownMs = Math.min(times.longestRetryMs, times.retryMs * 2 ** Math.min(failures - 1, 10));
  const delayMs = leadsAt(candidate, now) ? times.retryMs : grownMs;
  return { ...candidate, failures, retryAt: now + delayMs * (0.5 + random / 2) };
}

/** The Lease to release. If its holder does not lead yet, it must expire, for the delay after its creation. */
export function leaseToRelease(candidate: Candidate, now: number): LeaseRecord | undefined {
  const { observed, renewedAt, leadsFrom } = candidate;
  return typeof observed === 'object' && holdsLease(candidate) && renewedAt !== undefined && now >= leadsFrom ? observed : undefined;
}

function expiryOf({ observedAt, times }: Candidate, observed: LeaseRecord): number {
  if (isReleased(observed)) return observedAt;
  return observedAt + Math.max(times.durationMs, Math.min(observed.durationMs ?? 0, LONGEST_FOREIGN_DURATION_MS));
}

const uidOf = (observed: Candidate['observed']): string | undefined => (typeof observed === 'object' ? observed.uid : undefined);
