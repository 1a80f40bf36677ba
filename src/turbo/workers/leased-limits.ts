/**
 * Limits of callers in a worker. The controller keeps the accounts, and lends amounts of them: requests within these
 * cost no message. What a worker has and does not use goes back within milliseconds, so that another one can use it.
 */
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import type { HeldAmounts, LimitAccounts } from '../../gateway/traffic/admit-caller.ts';
import { NO_AMOUNTS, type LimitedAmounts, type LimitState, type LimitStates } from '../../gateway/traffic/caller-account.ts';
import type { LimitAnswer, LimitAsk, LimitReport } from './messages.ts';

const RETURN_MS = 50;
/** A refusal holds for so long, so that callers who do not wait cost no messages. */
const REFUSED_MS = 50;

interface Waiting {
  readonly amounts: LimitedAmounts;
  readonly limits: CallerLimits;
  readonly resolve: (held: HeldAmounts) => void;
}

interface Lease {
  /** Negative: more was used than the estimate said. */
  free: LimitedAmounts;
  /** Not reported yet. */
  used: LimitReport['used'];
  limits: CallerLimits | undefined;
  states: LimitStates;
  usedAt: number;
  isAsking: boolean;
  /** What the last question named. */
  need: LimitedAmounts;
  /** The last answer granted no more requests in flight: others may need what comes free. */
  isTight: boolean;
  /** The last answer, if a limit was reached. */
  refused: Refused | undefined;
  readonly waiting: Waiting[];
}

interface Refused extends HeldAmounts {
  readonly amounts: LimitedAmounts;
  readonly until: number;
}

interface LeaseSources {
  readonly ask: (ask: LimitAsk) => void;
  readonly report: (report: LimitReport) => void;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export function createLeasedAccounts({ ask, report, now }: LeaseSources) {
  const leases = new Map<string, Lease>();
  let timer: NodeJS.Timeout | undefined;

  function leaseOf(key: string): Lease {
    const known = leases.get(key);
    if (known !== undefined) return known;
    const used = { requests: 0, tokens: 0 };
    const added = { free: NO_AMOUNTS, used, limits: undefined, states: NO_STATES, usedAt: now(), isAsking: false, waiting: [] };
    const lease = { ...added, need: NO_AMOUNTS, isTight: false, refused: undefined };
    leases.set(key, lease);
    return lease;
  }

  function take(lease: Lease, amounts: LimitedAmounts): HeldAmounts {
    lease.free = add(lease.free, amounts, -1);
    lease.used = { requests: lease.used.requests + amounts.requests, tokens: lease.used.tokens };
    lease.usedAt = now();
    returnSoon();
    const { requests, tokens } = lease.states;
    return {
      over: undefined,
      states: { requests: withLease(requests, lease.free.requests), tokens: withLease(tokens, lease.free.tokens) },
    };
  }

  /** Asks for what the first request lacks. */
  function askFor(key: string, lease: Lease): void {
    const [first] = lease.waiting;
    if (lease.isAsking || first === undefined) return;
    lease.isAsking = true;
    // What was lent under other limits is none of these.
    const back = lease.limits === first.limits ? NO_AMOUNTS : positive(lease.free);
    lease.free = add(lease.free, back, -1);
    const need = positive(add(first.amounts, lease.free, -1));
    lease.need = need;
    ask({ key, limits: first.limits, need, used: takeUsed(lease), back });
  }

  function returnSoon(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      for (const [key, lease] of leases) returnUnused(key, lease);
      if (leases.size > 0) returnSoon();
    }, RETURN_MS).unref();
  }

  function returnUnused(key: string, lease: Lease): void {
    const isIdle = now() - lease.usedAt >= RETURN_MS && !lease.isAsking;
    const isReported = giveBack(key, lease, isIdle ? lease.free : NO_AMOUNTS);
    if (isIdle && !isReported && lease.waiting.length === 0) leases.delete(key);
  }

  /** False: there was nothing to report. */
  function giveBack(key: string, lease: Lease, amounts: LimitedAmounts): boolean {
    const back = positive(amounts);
    lease.free = add(lease.free, back, -1);
    const used = takeUsed(lease);
    const isNothing = used.requests + used.tokens + back.requests + back.tokens + back.inFlight === 0;
    if (!isNothing) report({ key, used, back });
    return !isNothing;
  }

  const isRefused = (refused: Refused | undefined, amounts: LimitedAmounts): refused is Refused =>
    refused !== undefined && now() < refused.until && covers(amounts, refused.amounts);

  const accounts: LimitAccounts = {
    hold(key, amounts, limits) {
      const lease = leaseOf(key);
      if (lease.limits === limits && lease.waiting.length === 0) {
        if (covers(lease.free, amounts)) return take(lease, amounts);
        if (isRefused(lease.refused, amounts)) return lease.refused;
      }
      return new Promise((resolve) => {
        lease.waiting.push({ amounts, limits, resolve });
        askFor(key, lease);
      });
    },
    settle(key, held, usedTokens) {
      const lease = leaseOf(key);
      lease.free = {
        requests: lease.free.requests,
        tokens: lease.free.tokens + held.tokens - usedTokens,
        inFlight: lease.free.inFlight + held.inFlight,
      };
      lease.used = { requests: lease.used.requests, tokens: lease.used.tokens + usedTokens };
      if (lease.isTight && held.inFlight > 0 && !lease.isAsking) giveBack(key, lease, { ...NO_AMOUNTS, inFlight: lease.free.inFlight });
      returnSoon();
    },
  };

  return {
    ...accounts,
    /** The answer to the last question about this caller. */
    answer({ key, over, granted, states }: LimitAnswer): void {
      const lease = leaseOf(key);
      lease.isAsking = false;
      lease.free = add(lease.free, granted, 1);
      lease.states = states;
      lease.isTight = granted.inFlight <= lease.need.inFlight;
      const [first] = lease.waiting;
      lease.limits = first?.limits;
      lease.refused =
        over === undefined || first === undefined
          ? undefined
          : { over, states, amounts: first.amounts, until: now() + Math.min(REFUSED_MS, over.waitMs ?? REFUSED_MS) };
      for (let next = lease.waiting[0]; next !== undefined && next.limits === lease.limits; next = lease.waiting[0]) {
        // Something may have come free meanwhile.
        const isCovered = covers(lease.free, next.amounts);
        if (!isCovered && !isRefused(lease.refused, next.amounts)) break;
        lease.waiting.shift();
        next.resolve(isCovered || lease.refused === undefined ? take(lease, next.amounts) : lease.refused);
      }
      askFor(key, lease);
    },
  };
}

const NO_STATES: LimitStates = { requests: undefined, tokens: undefined };

/** What this worker has can still be used. */
const withLease = (state: LimitState | undefined, free: number): LimitState | undefined =>
  state && { ...state, remaining: state.remaining + Math.max(0, free) };

function takeUsed(lease: Lease): LimitReport['used'] {
  const { used } = lease;
  lease.used = { requests: 0, tokens: 0 };
  return used;
}

const covers = (free: LimitedAmounts, { requests, tokens, inFlight }: LimitedAmounts): boolean =>
  free.requests >= requests && (tokens === 0 || free.tokens >= tokens) && free.inFlight >= inFlight;

const add = (one: LimitedAmounts, other: LimitedAmounts, sign: 1 | -1): LimitedAmounts => ({
  requests: one.requests + sign * other.requests,
  tokens: one.tokens + sign * other.tokens,
  inFlight: one.inFlight + sign * other.inFlight,
});

const positive = ({ requests, tokens, inFlight }: LimitedAmounts): LimitedAmounts => ({
  requests: Math.max(0, requests),
  tokens: Math.max(0, tokens),
  inFlight: Math.max(0, inFlight),
});
