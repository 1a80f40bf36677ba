/** Lends amounts of callers' accounts to processes: much while much is free, and single requests near a limit. */
import type { SharedLimits } from '../../gateway/limits/shared-limits.ts';
import type { LocalAccounts } from '../../gateway/traffic/admit-caller.ts';
import { NO_AMOUNTS, type LimitedAmounts } from '../../gateway/traffic/caller-account.ts';
import type { LimitAnswer, LimitAsk, LimitReport } from './messages.ts';

/** Each process gets this part of what it could have, so that others find some too. */
const LENT = 1 / 4;

interface LenderDeps {
  readonly accounts: Pick<LocalAccounts, 'account' | 'within'>;
  readonly processes: number;
  readonly now: () => number;
  /** Undefined: no other gateway counts with this one. */
  readonly shared?: Pick<SharedLimits, 'all' | 'assume' | 'changed' | 'hold' | 'isShared'> | undefined;
}

export type Lender = ReturnType<typeof createLender>;

export function createLender({ accounts, processes, now, shared }: LenderDeps) {
  /** What each process has, by caller. One that ends gets another map. */
  const lent = new Map<number, Map<string, LimitedAmounts>>();

  function lentTo(worker: number): Map<string, LimitedAmounts> {
    const ofWorker = lent.get(worker) ?? new Map<string, LimitedAmounts>();
    lent.set(worker, ofWorker);
    return ofWorker;
  }

  function note(ofWorker: Map<string, LimitedAmounts>, key: string, amounts: LimitedAmounts, sign: 1 | -1): void {
    const { requests, tokens, inFlight } = ofWorker.get(key) ?? NO_AMOUNTS;
    const next = {
      requests: requests + sign * amounts.requests,
      tokens: tokens + sign * amounts.tokens,
      inFlight: inFlight + sign * amounts.inFlight,
    };
    if (next.requests === 0 && next.tokens === 0 && next.inFlight === 0) ofWorker.delete(key);
    else ofWorker.set(key, next);
  }

  function take(worker: number, { key, used, back }: LimitReport): void {
    const held = { requests: used.requests + back.requests, tokens: used.tokens + back.tokens, inFlight: back.inFlight };
    accounts.account(key).settle(held, used, now());
    note(lentTo(worker), key, held, -1);
    shared?.changed(key, back.requests + back.tokens + back.inFlight > 0);
  }

  function lendOwn(ofWorker: Map<string, LimitedAmounts>, { key, limits: whole, need }: LimitAsk): LimitAnswer {
    const account = accounts.account(key);
    const limits = accounts.within(whole);
    const over = shared?.all(key).hold(need, whole, now()) ?? account.hold(need, limits, now());
    if (over !== undefined) return { key, over, granted: NO_AMOUNTS, states: account.states(limits, now()) };
    const free = account.free(limits, now());
    const part = (amount: number): number => (Number.isFinite(amount) ? Math.floor((amount * LENT) / processes) : 0);
    const extra = { requests: part(free.requests), tokens: part(free.tokens), inFlight: part(free.inFlight) };
    const granted = {
      requests: need.requests + extra.requests,
      tokens: need.tokens + extra.tokens,
      inFlight: need.inFlight + extra.inFlight,
    };
    account.hold(extra, limits, now());
    shared?.assume(key, granted, whole);
    note(ofWorker, key, granted, 1);
    return { key, over, granted, states: account.states(limits, now()) };
  }

  /** Counts as used, except for requests in flight: nobody knows better. */
  function settleAll(ofWorker: Map<string, LimitedAmounts>): void {
    for (const [key, held] of ofWorker) {
      accounts.account(key).settle(held, held, now());
      shared?.changed(key, true);
    }
    ofWorker.clear();
  }

  return {
    take,
    /** At once, unless a server is asked. */
    lend(worker: number, ask: LimitAsk): LimitAnswer | Promise<LimitAnswer> {
      const { key, need, limits } = ask;
      take(worker, ask);
      const ofWorker = lentTo(worker);
      if (shared?.isShared() !== true) return lendOwn(ofWorker, ask);
      return shared.hold(key, need, limits, processes).then((held) => {
        const answer = held === undefined ? lendOwn(ofWorker, ask) : { key, ...held };
        if (held !== undefined) note(ofWorker, key, held.granted, 1);
        // It has ended meanwhile.
        if (lent.get(worker) !== ofWorker) settleAll(ofWorker);
        return answer;
      });
    },
    /** A worker has ended. */
    forget(worker: number): void {
      const ofWorker = lentTo(worker);
      lent.delete(worker);
      settleAll(ofWorker);
    },
  };
}
