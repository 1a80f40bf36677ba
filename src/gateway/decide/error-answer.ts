/** An error of the contract as it goes over the wire. */
import { ERROR_CODES, errorBody, type ErrorCode } from '../../schema/error-codes.ts';

export interface ErrorAnswer {
  readonly status: number;
  /** Name, value, name, value: as `writeHead` takes them. */
  readonly headers: string[];
  readonly body: string;
}

/** Seconds after which to come back; the SDKs obey at most 60. */
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
  const headers = errorHeaders(code, body, options.requestId);
  for (const [name, value] of Object.entries(options.headers ?? {})) headers.push(name, value);
  return { status: ERROR_CODES[code].status, headers, body };
}

function errorHeaders(code: ErrorCode, body: string, requestId: string | undefined): string[] {
  const headers = ['content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(body))];
  if (requestId !== undefined) headers.push('x-request-id', requestId);
  headers.push(...retryHeaders(code));
  return headers;
}

/** What tells a client's automatic retry whether it can help, and when. */
function retryHeaders(code: ErrorCode): readonly string[] {
  const facts: { readonly retry?: boolean; readonly status: number } = ERROR_CODES[code];
  if (facts.retry === false) return ['x-should-retry', 'false'];
  const after = RETRY_AFTER[code];
  if (after !== undefined) return ['retry-after', after];
  return facts.status === 401 ? ['www-authenticate', 'Bearer'] : [];
}
