/** Renders an error of the service as an HTTP response. */
import { ERROR_CODES, errorBody, type ErrorCode } from '../../schema/error-codes.ts';

export interface ErrorAnswer {
  readonly status: number;
  /** Name, value, name, value: as `writeHead` takes them. */
  readonly headers: string[];
  readonly body: string;
}

/** Seconds after which to retry; OpenAI's SDKs honour at most 60. */
const RETRY_AFTER: Partial<Record<ErrorCode, string>> = { 'slot.loading': '10', 'slot.queue_full': '5', 'server.overloaded': '1' };

export function errorAnswer(
  code: ErrorCode,
  message: string,
  options: {
    readonly param?: string | null | undefined;
    readonly requestId?: string | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
  } = {},
): ErrorAnswer {
  const body = JSON.stringify(errorBody(code, message, options.param ?? null));
  const headers = ['content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(body))];
  if (options.requestId !== undefined) headers.push('x-request-id', options.requestId);
  headers.push(...retryHeaders(code), ...Object.entries(options.headers ?? {}).flat());
  return { status: ERROR_CODES[code].status, headers, body };
}

/** Headers that control a client's automatic retries. */
function retryHeaders(code: ErrorCode): readonly string[] {
  const facts: { readonly retry?: boolean; readonly status: number } = ERROR_CODES[code];
  if (facts.retry === false) return ['x-should-retry', 'false'];
  const after = RETRY_AFTER[code];
  if (after !== undefined) return ['retry-after', after];
  return facts.status === 401 ? ['www-authenticate', 'Bearer'] : [];
}
