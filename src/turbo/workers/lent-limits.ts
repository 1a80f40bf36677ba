/** Lends amounts of callers' accounts to workers: much while much is free, and single requests near a limit. */
import type { LocalAccounts } from '../../gateway/traffic/admit-caller.ts';
import { NO_AMOUNTS, type LimitedAmounts } from '../../gateway/traffic/caller-account.ts';
import type { LimitAnswer, LimitAsk, LimitReport } from './messages.ts';

/** Each process gets this part of what it could have, so that others find some too. */
const LENT = 1 / 4;

export function createLender(accounts: Pick<LocalAccounts, 'account'>, processes: number, now: () => number) {
  /** What each worker has, by caller. */
  const lent = new Map<number, Map<string, LimitedAmounts>>();

  function note(worker: number, key: string, amounts: LimitedAmounts, sign: 1 | -1): void {
    const ofWorker = lent.get(worker) ?? new Map<string, LimitedAmounts>();
    lent.set(worker, ofWorker);
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
    note(worker, key, held, -1);
  }

  return {
    take,
    lend(worker: number, { limits, need, ...report }: LimitAsk): LimitAnswer {
      const { key } = report;
      take(worker, report);
      const account = accounts.account(key);
      const over = account.hold(need, limits, now());
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
      note(worker, key, granted, 1);
      return { key, over, granted, states: account.states(limits, now()) };
    },
    /** A worker has ended. What it had counts as used, except for requests in flight: nobody knows better. */
    forget(worker: number): void {
      for (const [key, held] of lent.get(worker) ?? []) accounts.account(key).settle(held, held, now());
      lent.delete(worker);
    },
  };
}
