/**
 * What a gateway reports of one caller to the server that adds up, what its answer means, and what a gateway enforces
 * without it. Pure.
 */
import type { CallerLimits } from '../../../schema/words/caller-limits.ts';
import type { LimitedAmounts, OverLimit } from '../../traffic/caller-account.ts';
import type { CountReport } from '../counting-script.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** What a gateway holds counts for so long after its last report, and its use for the period of the limit besides. */
const LEASE_MS = 10_000;
export const KEEP_MS = [MINUTE_MS + LEASE_MS, MINUTE_MS + LEASE_MS, DAY_MS + LEASE_MS, LEASE_MS] as const;
/** As between processes: each gets this part of what it could have, so that others find some too. */
const GRANTED = 1 / 4;

const KEYS = ['requests_per_minute', 'tokens_per_minute', 'tokens_per_day', 'max_in_flight'] as const;
const CODES = ['limit.requests', 'limit.tokens', 'limit.tokens', 'limit.in_flight'] as const;

export function composeReport(
  counts: CountReport['counts'],
  { requests, tokens, inFlight }: LimitedAmounts,
  limits: CallerLimits,
  processes: number,
): CountReport {
  // A larger request than the limit gets all of it, because the estimate may be wrong.
  const tokensOf = (limit = Infinity): number => Math.min(tokens, limit);
  const isAsking = requests + tokens + inFlight > 0;
  return {
    counts: counts.map((list, index) => (limitAt(limits, index) === undefined ? [] : list)),
    need: [requests, tokensOf(limits.tokens_per_minute), tokensOf(limits.tokens_per_day), inFlight],
    limits: KEYS.map((_, index) => limitAt(limits, index) ?? -1),
    keepMs: KEEP_MS,
    part: isAsking ? GRANTED / processes : 0,
  };
}

const limitAt = (limits: CallerLimits, index: number): number | undefined => limits[KEYS[index] ?? 'max_in_flight'];

/** Tokens count for two limits: as many as both allow. */
export function extraOf(extra: CountReport['need'], limits: CallerLimits): LimitedAmounts {
  const allowed = [1, 2].flatMap((index) => (limitAt(limits, index) === undefined ? [] : [extra[index] ?? 0]));
  return { requests: extra[0] ?? 0, tokens: allowed.length === 0 ? 0 : Math.min(...allowed), inFlight: extra[3] ?? 0 };
}

/** The answer for a limit that had room again when its counts were looked at. `over`: as the server says. */
export function overOf(over: number): OverLimit {
  const key = KEYS[over - 1] ?? 'requests_per_minute';
  const message = `The caller has reached its limit "${key}", over all gateways: send the request again in a moment`;
  return { code: CODES[over - 1] ?? 'limit.requests', message, waitMs: 1 };
}

/** A gateway that counts alone enforces an equal part of each limit, rounded up, so that none becomes 0. */
export function shareOf(limits: CallerLimits, gateways: number): CallerLimits {
  if (gateways <= 1) return limits;
  const parts = KEYS.flatMap((key) => (limits[key] === undefined ? [] : [[key, Math.ceil(limits[key] / gateways)] as const]));
  return { ...limits, ...Object.fromEntries(parts) };
}
