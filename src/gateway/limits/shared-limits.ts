/**
 * Accounts whose counts several gateways share through a server. Each gateway keeps its own accounts, and reports them:
 *
 *   a process needs amounts ─► report, ask for them and for more ─► the server adds up all gateways ─► granted, or over
 *   amounts come back ─► report at once     amounts were used ─► report within a second
 *   the server is lost ─► its share of each limit, within what is known of the others, who may use as much
 *
 * A report has all that counts, so that a server which has lost its memory learns it again.
 */
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import type { LocalAccounts } from '../traffic/admit-caller.ts';
import { CallerAccount, NO_AMOUNTS, type LimitedAmounts, type LimitStates, type OverLimit } from '../traffic/caller-account.ts';
import { KEEP_MS, composeReport, extraOf, overOf } from './decide/count-report.ts';
import type { CountAnswer, CountReport, OtherCounts } from './counting-script.ts';

/** The counts of all gateways. */
export interface CountServer {
  /** Reports, and asks for more. Undefined: the server cannot be asked at present. */
  ask(key: string, report: CountReport): Promise<CountAnswer | undefined>;
  /** What it grants counts: it has been back for a while, and each gateway has reported. */
  isShared(): boolean;
  /** Gateways that were seen last, with this one. */
  gateways(): number;
  /** Calls back when it has lost reports, or may have. */
  onReset(callback: () => void): void;
}

export interface Held {
  readonly over: OverLimit | undefined;
  readonly states: LimitStates;
  readonly granted: LimitedAmounts;
}

/** What counts is reported so often, if nothing else happens. */
const TICK_MS = 1000;
/** What is held counts for three times as long without a report. */
const RENEW_MS = 3000;

interface SharedKey {
  limits: CallerLimits;
  isChanged: boolean;
  reportedAt: number;
  others: readonly OtherCounts[];
  /** What others may have used since the server was lost. */
  assumed: CallerAccount | undefined;
  /** The report that is under way, and those that wait for it. */
  last: Promise<unknown>;
  reports: number;
  /** A report without a need waits for its turn. */
  isReporting: boolean;
}

interface SharedLimitsDeps {
  readonly server: CountServer;
  readonly accounts: Pick<LocalAccounts, 'account'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export type SharedLimits = ReturnType<typeof createSharedLimits>;

export function createSharedLimits({ server, accounts, now }: SharedLimitsDeps) {
  const keys = new Map<string, SharedKey>();

  function keyOf(key: string, limits: CallerLimits): SharedKey {
    const known = keys.get(key);
    if (known !== undefined) return Object.assign(known, { limits });
    const added = {
      limits,
      isChanged: false,
      reportedAt: now(),
      others: [],
      assumed: undefined,
      last: Promise.resolve(),
      reports: 0,
      isReporting: false,
    };
    keys.set(key, added);
    return added;
  }

  /** One report of a caller at a time, because the next one contains what this one grants. */
  function inTurn<T>(entry: SharedKey, work: () => Promise<T>): Promise<T> {
    entry.reports += 1;
    const done = entry.last.then(work).finally(() => (entry.reports -= 1));
    entry.last = done.catch(() => undefined);
    return done;
  }

  async function report(key: string, entry: SharedKey, need: LimitedAmounts, processes: number): Promise<CountAnswer | undefined> {
    const account = accounts.account(key);
    entry.isChanged = false;
    entry.reportedAt = now();
    const answer = await server.ask(key, composeReport(account.counts(KEEP_MS, now()), need, entry.limits, processes));
    if (answer === undefined) entry.isChanged = true;
    else entry.others = answer.others;
    if (answer !== undefined && server.isShared()) entry.assumed = undefined;
    return answer;
  }

  function reportSoon(key: string, entry: SharedKey): void {
    if (entry.isReporting) return;
    entry.isReporting = true;
    void inTurn(entry, async () => {
      entry.isReporting = false;
      await report(key, entry, NO_AMOUNTS, 1);
    });
  }

  /** The account with all that is known of other gateways. */
  function all(key: string): CallerAccount {
    const at = now();
    const sum = new CallerAccount();
    sum.include(accounts.account(key).counts(KEEP_MS, at), 0, at);
    const { others = [], assumed, reportedAt = at } = keys.get(key) ?? {};
    if (assumed !== undefined) sum.include(assumed.counts(KEEP_MS, at), 0, at);
    for (const { counts, agoMs } of others) sum.include(counts, agoMs + at - reportedAt, at);
    return sum;
  }

  server.onReset(() => {
    for (const [key, entry] of keys) reportSoon(key, entry);
  });
  setInterval(() => {
    for (const [key, entry] of keys) {
      const account = accounts.account(key);
      if (entry.reports === 0 && account.isIdle(now())) keys.delete(key);
      else if (entry.isChanged || (account.holds() && now() - entry.reportedAt >= RENEW_MS)) reportSoon(key, entry);
    }
  }, TICK_MS).unref();

  return {
    all,
    isShared: server.isShared,
    /** Holds the need, and a part of the rest, in the account. Undefined: the server cannot be asked. */
    async hold(key: string, need: LimitedAmounts, limits: CallerLimits, processes: number): Promise<Held | undefined> {
      const entry = keyOf(key, limits);
      return await inTurn(entry, async () => {
        const answer = server.isShared() ? await report(key, entry, need, processes) : undefined;
        // Others may not have reported yet what they have used without the server.
        if (answer === undefined || !server.isShared()) return undefined;
        const granted = answer.over === 0 ? addAmounts(need, extraOf(answer.extra, limits)) : NO_AMOUNTS;
        const over = answer.over === 0 ? undefined : (all(key).hold(need, limits, now()) ?? overOf(answer.over));
        accounts.account(key).hold(granted, NO_LIMITS, now());
        return { over, granted, states: all(key).states(limits, now()) };
      });
    },
    /** This gateway has granted amounts without the server: as much as each other gateway may have. */
    assume(key: string, { requests, tokens }: LimitedAmounts, limits: CallerLimits): void {
      const entry = keyOf(key, limits);
      const others = server.gateways() - 1;
      entry.assumed ??= new CallerAccount();
      entry.assumed.settle(NO_AMOUNTS, { requests: others * requests, tokens: others * tokens }, now());
    },
    /** The account has changed. `isFree`: others can use what it no longer holds. */
    changed(key: string, isFree: boolean): void {
      const entry = keys.get(key);
      if (entry === undefined) return;
      entry.isChanged = true;
      if (isFree) reportSoon(key, entry);
    },
  };
}

const NO_LIMITS: CallerLimits = {};

const addAmounts = (one: LimitedAmounts, other: LimitedAmounts): LimitedAmounts => ({
  requests: one.requests + other.requests,
  tokens: one.tokens + other.tokens,
  inFlight: one.inFlight + other.inFlight,
});
