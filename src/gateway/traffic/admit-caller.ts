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

/** Names and values in turn. */
type Headers = readonly string[];

export interface AdmittedRequest {
  readonly kind: 'admitted';
  readonly headers: Headers;
  /** Call this once. `tokens`: undefined if nothing is known of them. `isServed`: it answered. */
  settle(use: { readonly tokens: Usage | undefined; readonly isServed: boolean }): void;
}

export interface RefusedRequest {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
  readonly headers: Headers;
}

type Admission = AdmittedRequest | RefusedRequest;

export interface HeldAmounts {
  readonly over: OverLimit | undefined;
  readonly states: LimitStates;
}

/** Who keeps the accounts: this process, or one that it asks. */
export interface LimitAccounts {
  hold(key: string, amounts: LimitedAmounts, limits: CallerLimits): HeldAmounts | Promise<HeldAmounts>;
  settle(key: string, held: LimitedAmounts, used: Omit<LimitedAmounts, 'inFlight'>): void;
}

/** Null: the caller has no limits that count. */
export type AdmitCaller = (caller: RequestCaller | undefined, bodyBytes: number) => Admission | Promise<Admission> | null;

export function createCallerLimits({ hold, settle }: LimitAccounts): AdmitCaller {
  /** Tokens of the answers that a caller gets. */
  const answers = new Map<string, { average: number }>();

  /** `prompt`: the tokens of the prompt among those set aside. */
  function admitted(
    key: string,
    { tokens: reserved, inFlight, prompt }: LimitedAmounts & { readonly prompt: number },
    { over, states }: HeldAmounts,
  ): Admission {
    const headers = headersOf(states);
    if (over !== undefined) return { kind: 'refuse', code: over.code, message: over.message, headers: [...headers, ...retryHeaders(over)] };
    return {
      kind: 'admitted',
      headers,
      settle({ tokens, isServed }) {
        if (tokens !== undefined) learn(key, tokens.output);
        const input = tokens?.isEstimated === true ? prompt : tokens?.input;
        // Nothing was reserved where tokens have no limit.
        const known = tokens === undefined || input === undefined ? (isServed ? reserved : 0) : input + tokens.output;
        const used = reserved === 0 ? 0 : known;
        settle(key, { requests: 0, tokens: reserved, inFlight }, { requests: 0, tokens: used });
      },
    };
  }

  function learn(key: string, output: number): void {
    const known = answers.get(key);
    if (known !== undefined) return void (known.average += (output - known.average) * LEARNED);
    answers.set(key, { average: output });
    const [oldest] = answers.size > MOST_LEARNED ? answers.keys() : [];
    if (oldest !== undefined) answers.delete(oldest);
  }

  return (caller, bodyBytes) => {
    const limits = caller?.limits;
    if (limits === undefined || !isCounted(limits)) return null;
    const { key } = caller ?? { key: '' };
    const output = Math.min(answers.get(key)?.average ?? 0, limits.max_output_tokens ?? Infinity);
    const prompt = countsTokens(limits) ? Math.ceil(bodyBytes / BYTES_PER_TOKEN) : 0;
    const amounts = {
      requests: limits.requests_per_minute === undefined ? 0 : 1,
      tokens: countsTokens(limits) ? prompt + Math.ceil(output) : 0,
      prompt,
      inFlight: limits.max_in_flight === undefined ? 0 : 1,
    };
    const held = hold(key, amounts, limits);
    return held instanceof Promise ? held.then((late) => admitted(key, amounts, late)) : admitted(key, amounts, held);
  };
}

const MOST_LEARNED = 10_000;
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

  const settle: LimitAccounts['settle'] = (key, held, used) => accountOf(key).settle(held, used, now());

  return {
    account: accountOf,
    settle,
    within,
    hold(key: string, amounts: LimitedAmounts, all: CallerLimits): HeldAmounts {
      const account = accountOf(key);
      const limits = within(all);
      const at = now();
      const over = account.hold(amounts, limits, at);
      // A request counts at once, whatever becomes of it.
      if (over === undefined && amounts.requests > 0) account.settle(ONE_REQUEST, ONE_REQUEST, at);
      return { over, states: account.states(limits, at) };
    },
  };
}

const countsTokens = ({ tokens_per_minute, tokens_per_day }: CallerLimits): boolean => (tokens_per_minute ?? tokens_per_day) !== undefined;

const isCounted = (limits: CallerLimits): boolean =>
  countsTokens(limits) || (limits.requests_per_minute ?? limits.max_in_flight) !== undefined;

/** OpenAI's: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers */
function headersOf({ requests, tokens }: LimitStates): Headers {
  const headers: string[] = [];
  if (requests !== undefined)
    push(headers, ['x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'], requests);
  if (tokens !== undefined) push(headers, ['x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'], tokens);
  return headers;
}

/** In whole seconds, of which there are few texts. */
function push(
  headers: string[],
  [ofLimit, left, reset]: readonly [string, string, string],
  { limit, remaining, resetMs }: LimitState,
): void {
  headers.push(ofLimit, String(limit), left, String(Math.floor(remaining)), reset, `${Math.ceil(resetMs / 1000)}s`);
}

/** Whole seconds by RFC 9110, and milliseconds, which OpenAI's SDKs prefer. */
function retryHeaders({ waitMs = IN_FLIGHT_WAIT_MS }: OverLimit): Headers {
  const ms = Math.max(1, Math.ceil(waitMs));
  return ['retry-after', String(Math.ceil(ms / 1000)), 'retry-after-ms', String(ms)];
}
