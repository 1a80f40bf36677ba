/** Limits of one caller: what is admitted, when the next request is, and what the headers say. */
import { describe, expect, test } from '@jest/globals';
import { CallerAccount, NO_AMOUNTS, type LimitedAmounts } from '../../../src/gateway/traffic/caller-account.ts';
import type { CallerLimits } from '../../../src/schema/words/caller-limits.ts';

const ask = (amounts: Partial<LimitedAmounts>): LimitedAmounts => ({ ...NO_AMOUNTS, ...amounts });

/** As for a request that is admitted in the process of its accounts. */
function admit(account: CallerAccount, amounts: Partial<LimitedAmounts>, limits: CallerLimits, now: number) {
  const over = account.hold(ask(amounts), limits, now);
  const requests = amounts.requests ?? 0;
  if (over === undefined) account.settle(ask({ requests }), { requests, tokens: 0 }, now);
  return over && { code: over.code, waitMs: over.waitMs };
}

describe('Requests', () => {
  const limits = { requests_per_minute: 3 };

  test('are admitted up to the limit, and again when the first one is a minute old', () => {
    const account = new CallerAccount();
    for (const at of [0, 1000, 2500]) expect(admit(account, { requests: 1 }, limits, at)).toBeUndefined();
    expect(admit(account, { requests: 1 }, limits, 10_000)).toEqual({ code: 'limit.requests', waitMs: 51_000 });
    expect(admit(account, { requests: 1 }, limits, 60_999)).toEqual({ code: 'limit.requests', waitMs: 1 });
    expect(admit(account, { requests: 1 }, limits, 61_000)).toBeUndefined();
    expect(admit(account, { requests: 1 }, limits, 61_000)).toEqual({ code: 'limit.requests', waitMs: 1000 });
  });

  test('that are refused do not count', () => {
    const account = new CallerAccount();
    for (let at = 0; at < 3; at += 1) admit(account, { requests: 1 }, limits, at);
    for (let at = 0; at < 60_000; at += 100) expect(admit(account, { requests: 1 }, limits, at)?.code).toBe('limit.requests');
    expect(admit(account, { requests: 1 }, limits, 61_000)).toBeUndefined();
  });

  test('count on while the limit is edited', () => {
    const account = new CallerAccount();
    for (let at = 0; at < 3; at += 1) admit(account, { requests: 1 }, limits, at);
    expect(admit(account, { requests: 1 }, { requests_per_minute: 4 }, 10)).toBeUndefined();
    expect(admit(account, { requests: 1 }, { requests_per_minute: 2 }, 10)).toEqual({ code: 'limit.requests', waitMs: 60_990 });
  });
});

describe('Tokens', () => {
  const limits = { tokens_per_minute: 1000 };

  test('are set aside while a request runs, and corrected when it has ended', () => {
    const account = new CallerAccount();
    expect(admit(account, { tokens: 600 }, limits, 0)).toBeUndefined();
    expect(admit(account, { tokens: 600 }, limits, 1)).toEqual({ code: 'limit.tokens', waitMs: undefined });
    account.settle(ask({ tokens: 600 }), { requests: 0, tokens: 100 }, 5000);
    expect(admit(account, { tokens: 600 }, limits, 5001)).toBeUndefined();
    account.settle(ask({ tokens: 600 }), { requests: 0, tokens: 950 }, 6000);
    expect(account.states(limits, 6000)).toEqual({ requests: undefined, tokens: { limit: 1000, remaining: 0, resetMs: 61_000 } });
    expect(admit(account, { tokens: 10 }, limits, 7000)).toEqual({ code: 'limit.tokens', waitMs: 59_000 });
    expect(admit(account, { tokens: 10 }, limits, 66_000)).toBeUndefined();
  });

  test('that are set aside count for a period from now on at least', () => {
    const account = new CallerAccount();
    const resetMs = (now: number) => account.states(limits, now).tokens?.resetMs;
    expect(resetMs(0)).toBe(0);
    admit(account, { tokens: 600 }, limits, 500.5);
    expect([resetMs(500.5), resetMs(30_000)]).toEqual([60_500, 61_000]);
    account.settle(ask({ tokens: 600 }), NO_AMOUNTS, 30_000);
    expect(resetMs(30_000)).toBe(0);
  });

  test('of a request that seems larger than the limit are admitted alone', () => {
    const account = new CallerAccount();
    expect(admit(account, { tokens: 5000 }, limits, 0)).toBeUndefined();
    expect(admit(account, { tokens: 1 }, limits, 0)?.code).toBe('limit.tokens');
    account.settle(ask({ tokens: 5000 }), { requests: 0, tokens: 10 }, 1);
    expect(admit(account, { tokens: 900 }, limits, 2)).toBeUndefined();
  });

  test('of a day count besides those of a minute, and the headers name the scarcer ones', () => {
    const both = { tokens_per_minute: 1000, tokens_per_day: 1500 };
    const account = new CallerAccount();
    account.settle(NO_AMOUNTS, { requests: 0, tokens: 900 }, 0);
    expect(account.states(both, 0)).toMatchObject({ tokens: { limit: 1000, remaining: 100 } });
    account.settle(NO_AMOUNTS, { requests: 0, tokens: 500 }, 120_000);
    expect(account.states(both, 120_000)).toMatchObject({ tokens: { limit: 1500, remaining: 100 } });
    expect(admit(account, { tokens: 101 }, both, 120_000)).toEqual({ code: 'limit.tokens', waitMs: 61 * 1_440_000 - 120_000 });
  });
});

test('requests in flight are counted until they end', () => {
  const limits = { max_in_flight: 2 };
  const account = new CallerAccount();
  for (let index = 0; index < 2; index += 1) expect(admit(account, { inFlight: 1 }, limits, 0)).toBeUndefined();
  expect(admit(account, { inFlight: 1 }, limits, 1e9)).toEqual({ code: 'limit.in_flight', waitMs: undefined });
  account.settle(ask({ inFlight: 1 }), { requests: 0, tokens: 0 }, 1e9);
  expect(admit(account, { inFlight: 1 }, limits, 1e9)).toBeUndefined();
  expect(account.free(limits, 1e9)).toEqual({ requests: Infinity, tokens: Infinity, inFlight: 0 });
});

test('a refused request holds nothing of its other amounts', () => {
  const limits = { requests_per_minute: 10, tokens_per_minute: 100, max_in_flight: 5 };
  const account = new CallerAccount();
  admit(account, { requests: 1, tokens: 90, inFlight: 1 }, limits, 0);
  for (let index = 0; index < 20; index += 1)
    expect(admit(account, { requests: 1, tokens: 90, inFlight: 1 }, limits, 0)?.code).toBe('limit.tokens');
  expect(account.free(limits, 0)).toEqual({ requests: 9, tokens: 10, inFlight: 4 });
});
