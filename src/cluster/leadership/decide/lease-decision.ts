/**
 * Who leads: what one candidate knows of the lease and does next. No two clocks are compared. A holder counts from before it sent its last renewal, everybody
 * else from when they saw it; so the holder has stopped when others may begin, however long messages take and whatever the clocks say. Pure.
 *
 * A lease that somebody deleted says nothing of who held it. So a created one is only a claim: its holder leads when a claim has stood for longer than
 * the holder of a deleted one can go on. Hence each life of the lease object has its own leaders, and no two lives overlap.
 */
import { isReleased, isSameRecord, type LeaseRecord } from './lease-record.ts';

/** All in milliseconds, shares of the lease's duration. */
export interface LeaseTimes {
  readonly durationMs: number;
  /** A holder renews as often. */
  readonly renewMs: number;
  /** A holder leads for so long after it sent a renewal. The rest of the duration is for clocks that run at different speeds and for writes under way. */
  readonly leadMs: number;
  /** A created lease must stand for so long. */
  readonly matureMs: number;
  /** A request may take so long. */
  readonly requestMs: number;
  /** First pause after a failure, and the longest one of those who do not lead. */
  readonly pauseMs: number;
  readonly longestPauseMs: number;
  /** A watch that says nothing for so long is not believed. */
  readonly silenceMs: number;
}

export interface Candidate {
  /** Of this process; the holder's name alone may be an earlier process's. */
  readonly holder: string;
  readonly instance: string;
  readonly times: LeaseTimes;
  /** What stands at the server, as far as is known. */
  readonly found: LeaseRecord | 'absent' | 'unknown';
  /** Since when it stands, by when it was seen. */
  readonly foundAt: number;
  /** When anything was heard of it last. */
  readonly heardAt: number;
  /** When the last renewal that succeeded was sent; undefined: this one holds no lease that it knows to be its own. */
  readonly renewedAt: number | undefined;
  readonly leadsFrom: number;
  /** The outcome of a write is not known, or it was refused. */
  readonly mustLook: boolean;
  readonly failures: number;
  /** Nothing is sent before. */
  readonly pausedUntil: number;
}

/** What to do now. `matures`: the lease that is written is a new life of it. */
export type LeaseStep =
  | { readonly kind: 'rest'; readonly until: number }
  | { readonly kind: 'look' }
  | { readonly kind: 'claim'; readonly before: LeaseRecord | undefined };

/** A longer duration than this in a lease is somebody's mistake, unless it is our own. */
const LONGEST_BELIEVED_MS = 10 * 60_000;

export function leaseTimes(durationMs: number): LeaseTimes {
  return {
    durationMs,
    renewMs: durationMs / 4,
    leadMs: (durationMs * 2) / 3,
    matureMs: (durationMs * 3) / 4,
    requestMs: durationMs / 5,
    pauseMs: durationMs / 20,
    longestPauseMs: durationMs / 4,
    silenceMs: durationMs / 2,
  };
}

export function newCandidate(holder: string, instance: string, times: LeaseTimes): Candidate {
  return {
    holder,
    instance,
    times,
    found: 'unknown',
    foundAt: 0,
    heardAt: 0,
    renewedAt: undefined,
    leadsFrom: 0,
    mustLook: false,
    failures: 0,
    pausedUntil: 0,
  };
}

export function nextStep(candidate: Candidate, now: number): LeaseStep {
  const { found, times, pausedUntil } = candidate;
  if (now < pausedUntil) return { kind: 'rest', until: pausedUntil };
  if (found === 'unknown' || candidate.mustLook) return { kind: 'look' };
  if (found === 'absent') return { kind: 'claim', before: undefined };
  if (holds(candidate)) {
    const renewAt = (candidate.renewedAt ?? Number.NEGATIVE_INFINITY) + times.renewMs;
    return now >= renewAt ? { kind: 'claim', before: found } : { kind: 'rest', until: renewAt };
  }
  const freeAt = freeFrom(candidate, found);
  if (now >= freeAt) return { kind: 'claim', before: found };
  const silentAt = candidate.heardAt + times.silenceMs;
  return now >= silentAt ? { kind: 'look' } : { kind: 'rest', until: Math.min(freeAt, silentAt) };
}

/** Whether the lease is in this process's name, as far as is known. Leading is more than that. */
export function holds({ found, holder, instance }: Candidate): boolean {
  return typeof found === 'object' && found.holder === holder && found.instance === instance;
}

/** When this one begins and ceases to lead, if nothing else comes; undefined: it does not. */
export function leadPeriod(candidate: Candidate): { readonly from: number; readonly until: number } | undefined {
  const { renewedAt, leadsFrom, times } = candidate;
  if (renewedAt === undefined || !holds(candidate)) return undefined;
  return { from: leadsFrom, until: renewedAt + times.leadMs };
}

export function leadsAt(candidate: Candidate, now: number): boolean {
  const period = leadPeriod(candidate);
  return period !== undefined && now >= period.from && now < period.until;
}

/** The answer to a look: what stands at the server now. */
export function looked(candidate: Candidate, found: LeaseRecord | 'absent', now: number): Candidate {
  const next = { ...candidate, heardAt: now, mustLook: false, failures: 0, pausedUntil: 0 };
  const before = candidate.found;
  if (typeof found === 'object' && typeof before === 'object' && isSameRecord(before, found)) return { ...next, found };
  const seen: Candidate = { ...next, found, foundAt: now };
  // A claim whose answer was lost: whether it began a life of the lease is not known.
  if (holds(seen)) return holds(candidate) && uidOf(before) === uidOf(found) ? seen : { ...seen, leadsFrom: now + seen.times.matureMs };
  return { ...seen, renewedAt: undefined };
}

/** News of a watch. Nothing new to a holder, who hears late of its own writes: only a look or a refused renewal tells it that it has lost the lease. */
export function heard(candidate: Candidate, found: LeaseRecord | 'absent', now: number): Candidate {
  if (holds(candidate)) return candidate;
  const { mustLook, failures, pausedUntil } = candidate;
  return { ...looked(candidate, found, now), mustLook, failures, pausedUntil };
}

/** A claim was accepted. */
export function claimed(
  candidate: Candidate,
  step: Extract<LeaseStep, { kind: 'claim' }>,
  record: LeaseRecord,
  sentAt: number,
  now: number,
): Candidate {
  const next = { ...candidate, found: record, foundAt: now, heardAt: now, renewedAt: sentAt, mustLook: false, failures: 0, pausedUntil: 0 };
  if (step.before === undefined) return { ...next, leadsFrom: now + candidate.times.matureMs };
  const renewal = step.before.holder === candidate.holder && step.before.instance === candidate.instance;
  return renewal ? next : { ...next, leadsFrom: now };
}

/** A claim was refused: somebody else wrote first. `share` in [0, 1) spreads those who compete. */
export function outrun(candidate: Candidate, now: number, share: number): Candidate {
  return { ...candidate, mustLook: true, pausedUntil: now + (candidate.times.pauseMs * share) / 4 };
}

/** A request failed, and what it did is not known. One who leads tries hard to go on; others have time. */
export function failed(candidate: Candidate, now: number, share: number): Candidate {
  const { times } = candidate;
  const failures = candidate.failures + 1;
  const grown = Math.min(times.longestPauseMs, times.pauseMs * 2 ** Math.min(failures - 1, 10));
  const pauseMs = leadsAt(candidate, now) ? times.pauseMs : grown;
  return { ...candidate, failures, pausedUntil: now + pauseMs * (0.5 + share / 2) };
}

/** The record to give back when this one goes; undefined: none. A claim that has not led yet is left to run out, since giving it back would make it lead. */
export function toRelease(candidate: Candidate, now: number): LeaseRecord | undefined {
  const { found, renewedAt, leadsFrom } = candidate;
  return typeof found === 'object' && holds(candidate) && renewedAt !== undefined && now >= leadsFrom ? found : undefined;
}

/** When a lease of another one is nobody's, if it is not renewed meanwhile. */
function freeFrom({ foundAt, times }: Candidate, found: LeaseRecord): number {
  if (isReleased(found)) return foundAt;
  const said = Math.min(found.durationMs ?? 0, LONGEST_BELIEVED_MS);
  return foundAt + Math.max(times.durationMs, said);
}

function uidOf(found: Candidate['found']): string | undefined {
  return typeof found === 'object' ? found.uid : undefined;
}
