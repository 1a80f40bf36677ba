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
  hold(key: string, amounts: LimitedAmounts, limits: CallerLimits): HeldAmounts | Promise<HeldAmounts>;
  settle(key: string, held: LimitedAmounts, used: Omit<LimitedAmounts, 'inFlight'>): void;
}

/** Null: the caller has no limits that count. */
export type AdmitCaller = (caller: RequestCaller | undefined, bodyBytes: number) => Admission | Promise<Admission> | null;

export function createCallerLimits({ hold, settle }: LimitAccounts): AdmitCaller {
  /** Tokens of the answers that a caller gets. */
  const answers = new Map<string, { average: number }>();
  const ofRequests = createLimitLines('requests');
  const ofTokens = createLimitLines('tokens');

  /** `prompt`: the tokens of the prompt among those set aside. */
  function admitted(
    key: string,
    { tokens: reserved, inFlight, prompt }: LimitedAmounts & { readonly prompt: number },
    { over, states }: HeldAmounts,
  ): Admission {
    const headerLines = ofRequests(states.requests) + ofTokens(states.tokens);
    if (over !== undefined)
      return { kind: 'refuse', code: over.code, message: over.message, headerLines: `${headerLines}${retryLines(over)}` };
    return {
      kind: 'admitted',
      headerLines,
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

/** There are as many limits as people write. */
const MOST_LIMITS = 1000;
/** Windows of a minute have no more seconds. */
const MOST_SECONDS = 64;

/** OpenAI's: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers. In whole seconds. */
function createLimitLines(what: 'requests' | 'tokens'): (state: LimitState | undefined) => HeaderLines {
  const begins = new Map<number, string>();
  const beginOf = (limit: number): string => {
    if (begins.size >= MOST_LIMITS) begins.clear();
    // A joined text is one piece, which costs less to write than its parts.
    const begin = [`x-ratelimit-limit-${what}: `, limit, `\r\nx-ratelimit-remaining-${what}: `].join('');
    begins.set(limit, begin);
    return begin;
  };
  const endOf = (seconds: number): string => ['\r\nx-ratelimit-reset-', what, ': ', seconds, 's\r\n'].join('');
  const ends = Array.from({ length: MOST_SECONDS }, (_none, seconds) => endOf(seconds));
  return (state) => {
    if (state === undefined) return '';
    const seconds = Math.ceil(state.resetMs / 1000);
    const end = seconds < MOST_SECONDS ? ends[seconds] : endOf(seconds);
    return `${begins.get(state.limit) ?? beginOf(state.limit)}${textOfCount(Math.floor(state.remaining))}${end}`;
  };
}

const BELOW_1000 = Array.from({ length: 1000 }, (_none, count) => String(count));
const LAST_DIGITS = BELOW_1000.map((text) => text.padStart(3, '0'));

/** V8 keeps the texts of numbers, which costs more than the text where each number is another one (docs/speed.md). */
function textOfCount(count: number): string {
  if (count < 1000) return BELOW_1000[count] ?? '';
  const thousands = Math.floor(count / 1000);
  // Faster than the remainder, which is no operation of the processor for numbers beyond 32 bits.
  return textOfCount(thousands) + (LAST_DIGITS[count - 1000 * thousands] ?? '');
}

/** Whole seconds by RFC 9110, and milliseconds, which OpenAI's SDKs prefer. */
function retryLines({ waitMs = IN_FLIGHT_WAIT_MS }: OverLimit): HeaderLines {
  const ms = Math.max(1, Math.ceil(waitMs));
  return `retry-after: ${Math.ceil(ms / 1000)}\r\nretry-after-ms: ${ms}\r\n`;
}
