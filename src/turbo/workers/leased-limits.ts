/**
 * Limits of callers in a worker. The controller keeps the accounts, and lends amounts of them: requests within these
 * cost no message. What a worker has and does not use goes back within milliseconds, so that another one can use it.
 */
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import type { HeldAmounts, LimitAccounts } from '../../gateway/traffic/admit-caller.ts';
import { NO_AMOUNTS, type LimitedAmounts, type LimitState, type LimitStates } from '../../gateway/traffic/caller-account.ts';
import type { LimitAnswer, LimitAsk, LimitReport } from './messages.ts';

const RETURN_MS = 50;

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
  readonly waiting: Waiting[];
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
    leases.set(key, added);
    return added;
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
    const back = isIdle ? positive(lease.free) : NO_AMOUNTS;
    if (isIdle) lease.free = add(lease.free, back, -1);
    const used = takeUsed(lease);
    if (used.requests + used.tokens + back.requests + back.tokens + back.inFlight > 0) report({ key, used, back });
    else if (isIdle && lease.waiting.length === 0) leases.delete(key);
  }

  const accounts: LimitAccounts = {
    hold(key, amounts, limits) {
      const lease = leaseOf(key);
      if (lease.limits === limits && lease.waiting.length === 0 && covers(lease.free, amounts)) return take(lease, amounts);
      return new Promise((resolve) => {
        lease.waiting.push({ amounts, limits, resolve });
        askFor(key, lease);
      });
    },
    settle(key, held, used) {
      const lease = leaseOf(key);
      lease.free = {
        requests: lease.free.requests,
        tokens: lease.free.tokens + held.tokens - used.tokens,
        inFlight: lease.free.inFlight + held.inFlight,
      };
      lease.used = { requests: lease.used.requests, tokens: lease.used.tokens + used.tokens };
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
      const [first] = lease.waiting;
      lease.limits = first?.limits;
      if (over === undefined) {
        for (
          let next = lease.waiting[0];
          next?.limits === lease.limits && next !== undefined && covers(lease.free, next.amounts);
          next = lease.waiting[0]
        ) {
          lease.waiting.shift();
          next.resolve(take(lease, next.amounts));
        }
      } else lease.waiting.shift()?.resolve({ over, states });
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
