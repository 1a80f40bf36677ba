/** The errors of the Messages API, whose SDKs read `error.type`, `request_id` and the header `request-id`. The fields of the service's own errors stay beside them. Pure. */
import type { Dialect } from '../route/decide/dialects.ts';

/** The API's types; an upstream that uses one of them is not changed. */
const TYPES: ReadonlySet<string> = new Set([
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'request_too_large',
  'rate_limit_error',
  'timeout_error',
  'api_error',
  'overloaded_error',
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

export const ANTHROPIC: Dialect = {
  requestIdHeader: 'request-id',
  errorEvent: 'error',
  errorBody: (error, status, requestId) => ({
    type: 'error',
    error: { ...error, type: TYPES.has(error.type) ? error.type : typeOf(status) },
    request_id: requestId,
  }),
};

function typeOf(status: number): string {
  return TYPE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}
