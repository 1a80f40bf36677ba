/**
 * What one caller has used, and whether another request is within its limits. Times are monotonic milliseconds.
 *
 *   hold   sets amounts aside, or names the limit that does not allow it
 *   settle ends that; what was used of it counts from now on
 *
 * A request counts when it is admitted, its tokens when it ends, because prompt and answer are not known before. So all
 * that ends within a period, and all that is set aside, stays below the limit as far as the estimates are right. Most
 * requests of a caller pass here, so an account allocates little.
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
  readonly limit: number;
  readonly remaining: number;
  /** Whole milliseconds until the whole limit is available again. At least a period while something is held. */
  readonly resetMs: number;
}

/** `tokens`: of the limit of which least remains. Undefined: there is none. */
export interface LimitStates {
  readonly requests: LimitState | undefined;
  readonly tokens: LimitState | undefined;
}

const PERIODS = { minute: 'a minute', day: '24 hours' };

export class CallerAccount {
  readonly #requests = new SlidingWindow(MINUTE_MS);
  readonly #minute = new SlidingWindow(MINUTE_MS);
  readonly #day = new SlidingWindow(DAY_MS);
  #heldRequests = 0;
  #heldTokens = 0;
  #inFlight = 0;

  hold({ requests, tokens, inFlight }: LimitedAmounts, limits: CallerLimits, now: number): OverLimit | undefined {
    const { max_in_flight: most, requests_per_minute: perMinute, tokens_per_minute: minute, tokens_per_day: day } = limits;
    if (most !== undefined && this.#inFlight + inFlight > most) return tooManyInFlight(most);
    if (perMinute !== undefined && this.#requests.total(now) + this.#heldRequests + requests > perMinute)
      return this.#tooManyRequests(requests, perMinute, now);
    const over = this.#judgeTokens(tokens, minute, 'minute', now) ?? this.#judgeTokens(tokens, day, 'day', now);
    if (over !== undefined) return over;
    this.#heldRequests += requests;
    this.#heldTokens += tokens;
    this.#inFlight += inFlight;
    return undefined;
  }

  settle(held: LimitedAmounts, used: Omit<LimitedAmounts, 'inFlight'>, now: number): void {
    this.#heldRequests -= held.requests;
    if (used.requests > 0) this.#requests.add(used.requests, now);
    this.release(held.tokens, held.inFlight, used.tokens, now);
  }

  /** Ends what was held of a request that counts already. */
  release(tokens: number, inFlight: number, usedTokens: number, now: number): void {
    this.#heldTokens -= tokens;
    this.#inFlight -= inFlight;
    if (usedTokens === 0) return;
    this.#minute.add(usedTokens, now);
    this.#day.add(usedTokens, now);
  }

  /** What could be held besides. `Infinity`: it has no limit. */
  free(limits: CallerLimits, now: number): LimitedAmounts {
    const { requests_per_minute: requests = Infinity, tokens_per_minute: tokens = Infinity, tokens_per_day: day = Infinity } = limits;
    const freeTokens = Math.min(tokens - this.#minute.total(now), day - this.#day.total(now)) - this.#heldTokens;
    return {
      requests: Math.max(0, requests - this.#requests.total(now) - this.#heldRequests),
      tokens: Math.max(0, freeTokens),
      inFlight: Math.max(0, (limits.max_in_flight ?? Infinity) - this.#inFlight),
    };
  }

  states({ requests_per_minute: requests, tokens_per_minute: minute, tokens_per_day: day }: CallerLimits, now: number): LimitStates {
    return {
      requests: requests === undefined ? undefined : stateOf(requests, this.#requests, this.#heldRequests, now),
      tokens: this.#tokenState(minute, day, now),
    };
  }

  #tokenState(minute: number | undefined, day: number | undefined, now: number): LimitState | undefined {
    const leftOfDay = day === undefined ? Infinity : day - this.#day.total(now);
    if (minute !== undefined && minute - this.#minute.total(now) <= leftOfDay) return stateOf(minute, this.#minute, this.#heldTokens, now);
    return day === undefined ? undefined : stateOf(day, this.#day, this.#heldTokens, now);
  }

  /** Counts of requests, tokens of a minute and of a day, and requests in flight. What is held counts for `keepMs`. */
  counts(keepMs: readonly number[], now: number): readonly (readonly number[])[] {
    const held = [this.#heldRequests, this.#heldTokens, this.#heldTokens, this.#inFlight];
    const used = [this.#requests.counts(now), this.#minute.counts(now), this.#day.counts(now), []];
    return used.map((counts, index) => [...counts, ...((held[index] ?? 0) > 0 ? [held[index] ?? 0, keepMs[index] ?? 0] : [])]);
  }

  /** Adds what another account counts, `agoMs` after it said so. */
  include([requests = [], minute = [], day = [], inFlight = []]: readonly (readonly number[])[], agoMs: number, now: number): void {
    this.#requests.include(requests, agoMs, now);
    this.#minute.include(minute, agoMs, now);
    this.#day.include(day, agoMs, now);
    for (const [index, amount] of inFlight.entries()) if (index % 2 === 0 && (inFlight[index + 1] ?? 0) > agoMs) this.#inFlight += amount;
  }

  holds(): boolean {
    return this.#heldRequests + this.#heldTokens + this.#inFlight !== 0;
  }

  /** Nothing of it limits a request any more. */
  isIdle(now: number): boolean {
    return !this.holds() && this.#requests.total(now) === 0 && this.#day.total(now) === 0;
  }

  #tooManyRequests(asked: number, limit: number, now: number): OverLimit {
    const message = `The caller has sent ${limit} requests within a minute, which is its limit ("requests_per_minute")`;
    return { code: 'limit.requests', message, waitMs: unlessNow(this.#requests.waitMs(limit - asked - this.#heldRequests, now)) };
  }

  #judgeTokens(asked: number, limit: number | undefined, period: keyof typeof PERIODS, now: number): OverLimit | undefined {
    if (limit === undefined || asked === 0) return undefined;
    const window = period === 'minute' ? this.#minute : this.#day;
    // A larger request than the limit gets all of it, because the estimate may be wrong.
    const room = limit - Math.min(asked, limit) - this.#heldTokens;
    const used = window.total(now);
    if (used <= room) return undefined;
    const pending = this.#heldTokens === 0 ? '' : `, and about ${Math.ceil(this.#heldTokens)} more are expected of those in flight`;
    const usage = `The caller has used ${Math.ceil(used)} tokens within ${PERIODS[period]}${pending}`;
    const message = `${usage}; its limit is ${limit} ("tokens_per_${period}")`;
    return { code: 'limit.tokens', message, waitMs: unlessNow(window.waitMs(room, now)) };
  }
}

function tooManyInFlight(limit: number): OverLimit {
  const message = `The caller has ${limit} requests in flight, which is its limit ("max_in_flight"): send this one when another has ended`;
  return { code: 'limit.in_flight', message, waitMs: undefined };
}

const stateOf = (limit: number, window: SlidingWindow, held: number, now: number): LimitState => ({
  limit,
  remaining: leftOf(limit, window, held, now),
  // What is held counts later. Whole numbers are kept in place.
  resetMs: Math.ceil(window.emptyMs(now, held > 0)),
});

const leftOf = (limit: number, window: SlidingWindow, held: number, now: number): number => Math.max(0, limit - window.total(now) - held);

const unlessNow = (waitMs: number): number | undefined => (waitMs === 0 ? undefined : waitMs);
