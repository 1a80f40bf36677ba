/** A dialect is the API of a path: it sets the shape of errors, and of answers where servers differ. Pure. */
import { createHash } from 'node:crypto';
import { ERROR_CODES, errorBody, type ErrorBody, type ErrorCode } from '../../../schema/words/error-codes.ts';
import { isTable } from '../../../schema/words/key-case.ts';

export interface Dialect {
  /** The name of a header with the request id besides `x-request-id`. */
  readonly requestIdHeader?: string;
  errorBody(error: ErrorBody['error'], status: number, requestId: string): object;
  /** The event that carries an error inside a stream. Default: an event without a name. */
  readonly errorEvent?: string;
  /** Translates a complete answer of the server. Undefined if it has an unexpected form. */
  readonly translateAnswer?: (answer: unknown, requestId: string) => object | undefined;
}

export interface ErrorAnswer {
  readonly status: number;
  /** Without `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Range of seconds for `Retry-After`, so that clients return spread out. OpenAI's SDKs honour at most 60. */
const RETRY_AFTER: Partial<Record<ErrorCode, readonly [number, number]>> = {
  'slot.loading': [10, 20],
  'auth.busy': [1, 3],
  'slot.queue_full': [5, 10],
  'server.overloaded': [1, 4],
};

export const OPENAI: Dialect = { errorBody: (error) => ({ error }) };

/** The API's types; an upstream that uses one of them is not changed. */
const TYPES: ReadonlySet<string> = new Set([
  ...'invalid_request_error authentication_error billing_error permission_error not_found_error'.split(' '),
  ...'request_too_large rate_limit_error timeout_error api_error overloaded_error'.split(' '),
]);

const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** The Messages API, whose SDKs read `error.type`, `request_id` and the header `request-id`. */
export const ANTHROPIC: Dialect = {
  requestIdHeader: 'request-id',
  errorEvent: 'error',
  errorBody: (error, status, requestId) => ({
    type: 'error',
    error: { ...error, type: TYPES.has(error.type) ? error.type : typeOf(status) },
    request_id: requestId,
  }),
};

const typeOf = (status: number): string => TYPE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');

/** Its clients show `error` only if it is a string. */
export const OLLAMA: Dialect = { errorBody: ({ message }) => ({ error: message }) };

/** Cohere's `/v2/rerank`, whose requests are the same as on the other rerank paths. */
export const COHERE: Dialect = {
  errorBody: (error, _status, requestId) => ({ id: requestId, message: error.message, error }),
  translateAnswer(answer, requestId) {
    const results = isTable(answer) ? answer['results'] : undefined;
    if (!Array.isArray(results)) return undefined;
    const scores = results.map(scoreOf);
    if (!scores.every((score) => score !== undefined)) return undefined;
    const meta = { api_version: { version: '2' }, ...tokensOf(answer) };
    return { id: requestId, results: scores.toSorted((one, other) => other.relevance_score - one.relevance_score), meta };
  },
};

function scoreOf(result: unknown) {
  if (!isTable(result)) return undefined;
  const { index, relevance_score: score } = result;
  return typeof index === 'number' && typeof score === 'number' ? { index, relevance_score: score } : undefined;
}

function tokensOf(answer: unknown): object {
  const usage = isTable(answer) ? answer['usage'] : undefined;
  const input = isTable(usage) ? usage['prompt_tokens'] : undefined;
  return typeof input === 'number' ? { tokens: { input_tokens: input } } : {};
}

export function errorAnswer(
  code: ErrorCode,
  message: string,
  options: {
    readonly requestId: string;
    readonly param?: string | null | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    readonly dialect?: Dialect;
  },
): ErrorAnswer {
  const { requestId, dialect = OPENAI } = options;
  const { status } = ERROR_CODES[code];
  const body = JSON.stringify(dialect.errorBody(errorBody(code, message, options.param ?? null).error, status, requestId));
  const own = dialect.requestIdHeader === undefined ? {} : { [dialect.requestIdHeader]: requestId };
  const headers = { 'content-type': JSON_TYPE, 'x-request-id': requestId, ...own, ...retryHeaders(code, requestId), ...options.headers };
  return { status, headers, body };
}

/** Headers that control a client's automatic retries. The id of the request stands for a random number. */
function retryHeaders(code: ErrorCode, requestId: string): Readonly<Record<string, string>> {
  const facts: { readonly retry?: boolean; readonly status: number } = ERROR_CODES[code];
  if (facts.retry === false) return { 'x-should-retry': 'false' };
  const after = RETRY_AFTER[code];
  if (after !== undefined) return { 'retry-after': String(pickSecond(after, requestId)) };
  return facts.status === 401 ? { 'www-authenticate': 'Bearer' } : {};
}

/** A second of the range, evenly spread over ids. */
function pickSecond([first, last]: readonly [number, number], requestId: string): number {
  return first + (createHash('sha256').update(requestId).digest().readUInt32BE(0) % (last - first + 1));
}
