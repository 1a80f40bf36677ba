/** Renders an error of the service as an HTTP response. */
import { createHash } from 'node:crypto';
import { ERROR_CODES, errorBody, type ErrorCode } from '../../schema/words/error-codes.ts';
import { OPENAI, type Dialect } from '../route/decide/dialects.ts';

export interface ErrorAnswer {
  readonly status: number;
  /** Without `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Seconds after which to retry, from the first number to the second: SDKs wait exactly as long as the header says, and those that are refused in the same moment
 * must not return in the same second. OpenAI's honour at most 60.
 */
const RETRY_AFTER: Partial<Record<ErrorCode, readonly [number, number]>> = {
  'slot.loading': [10, 20],
  'auth.busy': [1, 3],
  'slot.queue_full': [5, 10],
  'server.overloaded': [1, 4],
};

export function errorAnswer(
  code: ErrorCode,
  message: string,
  options: {
    readonly requestId: string;
    readonly param?: string | null | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** Default: the dialect of OpenAI. */
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
