/** Admits requests of callers with limits, and tells the client what remains. */
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { CallerLimits, RequestCaller } from '../../schema/words/caller-limits.ts';
import type { Usage } from '../upstream/decide/judge-answer.ts';
import { CallerAccount, type LimitedAmounts, type LimitState, type LimitStates, type OverLimit } from './caller-account.ts';

/** A text of ordinary language has about four bytes for each token. */
const BYTES_PER_TOKEN = 4;
/** The last answers tell more of the next one than those before them. */
const LEARNED = 1 / 4;
/** When another request of the caller ends is not known. */
const IN_FLIGHT_WAIT_MS = 1000;
/** Accounts that are looked at for each new one, so that those of callers that have left go. */
const LOOKED_AT = 2;

/** Header lines, each with its line end. */
type HeaderLines = string;

export interface AdmittedRequest {
  readonly kind: 'admitted';
  readonly headerLines: HeaderLines;
  /** Call this once. `tokens`: undefined if nothing is known of them. `isServed`: it answered. */
  settle(use: { readonly tokens: Usage | undefined; readonly isServed: boolean }): void;
}

export interface RefusedRequest {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
  readonly headerLines: HeaderLines;
}

type Admission = AdmittedRequest | RefusedRequest;

export interface HeldAmounts {
  readonly over: OverLimit | undefined;
  readonly states: LimitStates;
}

/** Who keeps the accounts: this process, or one that it asks. */
export interface LimitAccounts {
  /** A request counts at once, whatever becomes of it. */
  hold(key: string, amounts: LimitedAmounts, limits: CallerLimits): HeldAmounts | Promise<HeldAmounts>;
  /** What was held of tokens and of requests in flight is free again; tokens that were used count from now on. */
  settle(key: string, held: LimitedAmounts, usedTokens: number): void;
}

/** Null: the caller has no limits that count. */
export type AdmitCaller = (caller: RequestCaller | undefined, bodyBytes: number) => Admission | Promise<Admission> | null;

export function createCallerLimits(accounts: LimitAccounts): AdmitCaller {
  const callers = new Map<string, KnownCaller>();

  function callerOf(key: string): KnownCaller {
    const known = callers.get(key);
    if (known !== undefined) return known;
    const added = new KnownCaller(key, accounts);
    callers.set(key, added);
    const [oldest] = callers.size > MOST_KNOWN ? callers.keys() : [];
    if (oldest !== undefined) callers.delete(oldest);
    return added;
  }

  return (caller, bodyBytes) => {
    const limits = caller?.limits;
    if (limits === undefined || !isCounted(limits)) return null;
    const { key } = caller ?? { key: '' };
    const known = callerOf(key);
    const request = new HeldRequest(known, limits, bodyBytes);
    const held = accounts.hold(key, request, limits);
    return held instanceof Promise ? held.then((late) => admissionOf(request, known, late)) : admissionOf(request, known, held);
  };
}

function admissionOf(request: HeldRequest, { requests, tokens }: KnownCaller, { over, states }: HeldAmounts): Admission {
  const headerLines = requests.of(states.requests) + tokens.of(states.tokens);
  if (over !== undefined)
    return { kind: 'refuse', code: over.code, message: over.message, headerLines: `${headerLines}${retryLines(over)}` };
  request.headerLines = headerLines;
  return request;
}

/** What this gateway knows of a caller whose requests are counted. */
class KnownCaller {
  /** Tokens of its answers. Undefined: it had none. */
  output: number | undefined;
  readonly requests = new LimitLines('requests');
  readonly tokens = new LimitLines('tokens');
  readonly #key: string;
  readonly #accounts: LimitAccounts;

  constructor(key: string, accounts: LimitAccounts) {
    this.#key = key;
    this.#accounts = accounts;
  }

  settle(held: LimitedAmounts, usedTokens: number): void {
    this.#accounts.settle(this.#key, held, usedTokens);
  }

  learn(output: number): void {
    this.output = this.output === undefined ? output : this.output + (output - this.output) * LEARNED;
  }
}

/** One object for each request, because these are most of what an admission costs. */
class HeldRequest implements AdmittedRequest, LimitedAmounts {
  readonly kind = 'admitted';
  headerLines: HeaderLines = '';
  readonly requests: number;
  readonly tokens: number;
  readonly inFlight: number;
  /** Tokens of the prompt among `tokens`. */
  readonly #prompt: number;
  readonly #caller: KnownCaller;

  constructor(caller: KnownCaller, limits: CallerLimits, bodyBytes: number) {
    this.#caller = caller;
    this.requests = limits.requests_per_minute === undefined ? 0 : 1;
    this.inFlight = limits.max_in_flight === undefined ? 0 : 1;
    const areTokensCounted = countsTokens(limits);
    const output = Math.min(caller.output ?? 0, limits.max_output_tokens ?? Infinity);
    this.#prompt = areTokensCounted ? Math.ceil(bodyBytes / BYTES_PER_TOKEN) : 0;
    this.tokens = areTokensCounted ? this.#prompt + Math.ceil(output) : 0;
  }

  settle({ tokens, isServed }: Parameters<AdmittedRequest['settle']>[0]): void {
    if (tokens !== undefined) this.#caller.learn(tokens.output);
    const reserved = this.tokens;
    const input = tokens?.isEstimated === true ? this.#prompt : tokens?.input;
    // Nothing was reserved where tokens have no limit.
    const known = tokens === undefined || input === undefined ? (isServed ? reserved : 0) : input + tokens.output;
    this.#caller.settle(this, reserved === 0 ? 0 : known);
  }
}

const MOST_KNOWN = 10_000;
const ONE_REQUEST: LimitedAmounts = { requests: 1, tokens: 0, inFlight: 0 };

export type LocalAccounts = ReturnType<typeof createLocalAccounts>;

/** `now`: monotonic milliseconds. `within`: the part of limits that this gateway enforces. Default: all. */
export function createLocalAccounts(now: () => number, within: (limits: CallerLimits) => CallerLimits = (limits) => limits) {
  const accounts = new Map<string, CallerAccount>();

  function accountOf(key: string): CallerAccount {
    const known = accounts.get(key);
    if (known !== undefined) return known;
    for (const [other, account] of accounts.entries().take(LOOKED_AT).toArray()) {
      accounts.delete(other);
      if (!account.isIdle(now())) accounts.set(other, account);
    }
    const added = new CallerAccount();
    accounts.set(key, added);
    return added;
  }

  return {
    account: accountOf,
    within,
    hold(key: string, amounts: LimitedAmounts, all: CallerLimits): HeldAmounts {
      const account = accountOf(key);
      const limits = within(all);
      const at = now();
      const over = account.hold(amounts, limits, at);
      if (over === undefined && amounts.requests > 0) account.settle(ONE_REQUEST, ONE_REQUEST, at);
      return { over, states: account.states(limits, at) };
    },
    settle(key: string, { tokens, inFlight }: LimitedAmounts, usedTokens: number): void {
      accountOf(key).release(tokens, inFlight, usedTokens, now());
    },
  };
}

const countsTokens = ({ tokens_per_minute, tokens_per_day }: CallerLimits): boolean => (tokens_per_minute ?? tokens_per_day) !== undefined;

const isCounted = (limits: CallerLimits): boolean =>
  countsTokens(limits) || (limits.requests_per_minute ?? limits.max_in_flight) !== undefined;

const MILLION = 1_000_000;
/** Numbers below 1000, also with three digits. V8 keeps the text of each number, which costs more (docs/speed.md). */
const BELOW_1000 = Array.from({ length: 1000 }, (_none, count) => String(count));
const LAST_DIGITS = BELOW_1000.map((text) => text.padStart(3, '0'));

/**
 * OpenAI's lines: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers. In whole seconds. What is
 * mostly the same for the next request is kept as joined texts, which are one piece and cost less to write than parts.
 */
class LimitLines {
  readonly #what: 'requests' | 'tokens';
  #limit = -1;
  #millions = -1;
  #begin = '';
  #seconds = -1;
  #end = '';

  constructor(what: 'requests' | 'tokens') {
    this.#what = what;
  }

  of(state: LimitState | undefined): HeaderLines {
    if (state === undefined) return '';
    const remaining = Math.floor(state.remaining);
    const millions = Math.floor(remaining / MILLION);
    if (state.limit !== this.#limit || millions !== this.#millions) this.#keepBegin(state.limit, millions);
    const seconds = Math.ceil(state.resetMs / 1000);
    if (seconds !== this.#seconds) this.#keepEnd(seconds);
    // Faster than the remainder, which is no operation of the processor for numbers beyond 32 bits.
    const rest = remaining - millions * MILLION;
    const thousands = Math.floor(rest / 1000);
    const last = rest - 1000 * thousands;
    if (millions === 0 && thousands === 0) return `${this.#begin}${BELOW_1000[last]}${this.#end}`;
    return `${this.#begin}${(millions === 0 ? BELOW_1000 : LAST_DIGITS)[thousands]}${LAST_DIGITS[last]}${this.#end}`;
  }

  #keepBegin(limit: number, millions: number): void {
    this.#limit = limit;
    this.#millions = millions;
    const what = this.#what;
    this.#begin = [`x-ratelimit-limit-${what}: `, limit, `\r\nx-ratelimit-remaining-${what}: `, millions === 0 ? '' : millions].join('');
  }

  #keepEnd(seconds: number): void {
    this.#seconds = seconds;
    this.#end = ['\r\nx-ratelimit-reset-', this.#what, ': ', seconds, 's\r\n'].join('');
  }
}

/** Whole seconds by RFC 9110, and milliseconds, which OpenAI's SDKs prefer. */
function retryLines({ waitMs = IN_FLIGHT_WAIT_MS }: OverLimit): HeaderLines {
  const ms = Math.max(1, Math.ceil(waitMs));
  return `retry-after: ${Math.ceil(ms / 1000)}\r\nretry-after-ms: ${ms}\r\n`;
}
