/**
 * What one caller has used, and whether another request is within its limits. Pure: times come from outside.
 *
 *   hold   sets amounts aside, or names the limit that does not allow it
 *   settle ends that; what was used of it counts from now on
 *
 * A request counts when it is admitted, its tokens when it ends, because prompt and answer are not known before. So all
 * that ends within a period, and all that is set aside, stays below the limit as far as the estimates are right.
 */
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import { SlidingWindow } from './sliding-window.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export interface LimitedAmounts {
  readonly requests: number;
  readonly tokens: number;
  readonly inFlight: number;
}

export const NO_AMOUNTS: LimitedAmounts = { requests: 0, tokens: 0, inFlight: 0 };

export interface OverLimit {
  readonly code: 'limit.requests' | 'limit.tokens' | 'limit.in_flight';
  readonly message: string;
  /** When it would be admitted, if nothing else comes first. Undefined: when a request of the caller ends. */
  readonly waitMs: number | undefined;
}

/** For the headers `x-ratelimit-*`. */
export interface LimitState {
  readonly kind: 'requests' | 'tokens';
  readonly limit: number;
  readonly remaining: number;
  /** Until the whole limit is available again. */
  readonly resetMs: number;
}

export class CallerAccount {
  readonly #requests = new SlidingWindow(MINUTE_MS);
  readonly #tokens = new SlidingWindow(MINUTE_MS);
  readonly #dayTokens = new SlidingWindow(DAY_MS);
  #held = NO_AMOUNTS;

  hold(amounts: LimitedAmounts, limits: CallerLimits, now: number): OverLimit | undefined {
    const over =
      this.#judgeInFlight(amounts.inFlight, limits.max_in_flight) ??
      this.#judgeRequests(amounts.requests, limits.requests_per_minute, now) ??
      this.#judgeTokens(amounts.tokens, { limit: limits.tokens_per_minute, ...PER_MINUTE }, this.#tokens, now) ??
      this.#judgeTokens(amounts.tokens, { limit: limits.tokens_per_day, ...PER_DAY }, this.#dayTokens, now);
    if (over === undefined) this.#held = sum(this.#held, amounts, 1);
    return over;
  }

  settle(held: LimitedAmounts, used: Omit<LimitedAmounts, 'inFlight'>, now: number): void {
    this.#held = sum(this.#held, held, -1);
    if (used.requests > 0) this.#requests.add(used.requests, now);
    if (used.tokens === 0) return;
    this.#tokens.add(used.tokens, now);
    this.#dayTokens.add(used.tokens, now);
  }

  /** What could be held besides. `Infinity`: it has no limit. */
  free(limits: CallerLimits, now: number): LimitedAmounts {
    const { requests_per_minute: requests = Infinity, tokens_per_minute: tokens = Infinity, tokens_per_day: day = Infinity } = limits;
    const freeTokens = Math.min(tokens - this.#tokens.total(now), day - this.#dayTokens.total(now)) - this.#held.tokens;
    return {
      requests: Math.max(0, requests - this.#requests.total(now) - this.#held.requests),
      tokens: Math.max(0, freeTokens),
      inFlight: Math.max(0, (limits.max_in_flight ?? Infinity) - this.#held.inFlight),
    };
  }

  /** The limit of requests, and the limit of tokens of which least remains. */
  states(limits: CallerLimits, now: number): readonly LimitState[] {
    const state = (kind: LimitState['kind'], limit: number | undefined, window: SlidingWindow): readonly LimitState[] => {
      const remaining = Math.max(0, (limit ?? 0) - window.total(now) - this.#held[kind]);
      return limit === undefined ? [] : [{ kind, limit, remaining, resetMs: window.waitMs(0, now) }];
    };
    const ofTokens = [
      ...state('tokens', limits.tokens_per_minute, this.#tokens),
      ...state('tokens', limits.tokens_per_day, this.#dayTokens),
    ];
    const scarcest = ofTokens.toSorted((one, other) => one.remaining - other.remaining).slice(0, 1);
    return [...state('requests', limits.requests_per_minute, this.#requests), ...scarcest];
  }

  /** Nothing of it limits a request any more. */
  isIdle(now: number): boolean {
    const { requests, tokens, inFlight } = this.#held;
    return requests + tokens + inFlight === 0 && this.#requests.total(now) === 0 && this.#dayTokens.total(now) === 0;
  }

  #judgeInFlight(asked: number, limit: number | undefined): OverLimit | undefined {
    if (limit === undefined || this.#held.inFlight + asked <= limit) return undefined;
    const message = `The caller has ${limit} requests in flight, which is its limit ("max_in_flight"): send this one when another has ended`;
    return { code: 'limit.in_flight', message, waitMs: undefined };
  }

  #judgeRequests(asked: number, limit: number | undefined, now: number): OverLimit | undefined {
    if (limit === undefined || this.#requests.total(now) + this.#held.requests + asked <= limit) return undefined;
    const message = `The caller has sent ${limit} requests within a minute, which is its limit ("requests_per_minute")`;
    return { code: 'limit.requests', message, waitMs: unlessNow(this.#requests.waitMs(limit - asked - this.#held.requests, now)) };
  }

  #judgeTokens(asked: number, { limit, key, period }: TokenLimit, window: SlidingWindow, now: number): OverLimit | undefined {
    // A larger request than the limit gets all of it, because the estimate may be wrong.
    const room = (limit ?? Infinity) - Math.min(asked, limit ?? Infinity);
    const used = window.total(now);
    const { tokens: held } = this.#held;
    if (limit === undefined || asked === 0 || used + held <= room) return undefined;
    const pending = held === 0 ? '' : `, and about ${Math.ceil(held)} more are expected of those in flight`;
    const message = `The caller has used ${Math.ceil(used)} tokens within ${period}${pending}; its limit is ${limit} ("${key}")`;
    return { code: 'limit.tokens', message, waitMs: unlessNow(window.waitMs(room - held, now)) };
  }
}

interface TokenLimit {
  readonly limit: number | undefined;
  readonly key: string;
  readonly period: string;
}

const PER_MINUTE = { key: 'tokens_per_minute', period: 'a minute' };
const PER_DAY = { key: 'tokens_per_day', period: '24 hours' };

const unlessNow = (waitMs: number): number | undefined => (waitMs === 0 ? undefined : waitMs);

const sum = (one: LimitedAmounts, other: LimitedAmounts, sign: 1 | -1): LimitedAmounts => ({
  requests: one.requests + sign * other.requests,
  tokens: one.tokens + sign * other.tokens,
  inFlight: one.inFlight + sign * other.inFlight,
});
