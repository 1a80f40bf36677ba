/** Every error that the HTTP API can return. The reference page is generated from this table, and the error handler looks codes up in it. */

interface ErrorFacts {
  readonly status: number;
  /** OpenAI's `type`. */
  readonly type: string;
  readonly when: string;
  /** False where an automatic retry cannot help; the response then carries `x-should-retry: false`. */
  readonly retry?: false;
}

export const ERROR_CODES = {
  'request.invalid': {
    status: 400,
    type: 'invalid_request_error',
    when: 'The JSON, a field, a header or the path is malformed; `param` names the field',
  },
  'auth.required': { status: 401, type: 'authentication_error', when: 'Authentication is enabled and the request has no credentials' },
  'auth.invalid': { status: 401, type: 'authentication_error', when: 'The bearer token matches no stored token' },
  'auth.scope': { status: 403, type: 'permission_error', when: 'The credentials are valid, but their scope does not allow this request' },
  'route.not_found': { status: 404, type: 'not_found_error', when: 'The path does not exist' },
  'slot.not_found': { status: 404, type: 'not_found_error', when: 'The slot does not exist' },
  'model.not_found': { status: 404, type: 'not_found_error', when: 'No slot serves this model; the message lists the known names' },
  'route.method': {
    status: 405,
    type: 'invalid_request_error',
    when: 'The path does not support this method; the `Allow` header lists the methods it supports',
  },
  'request.timeout': { status: 408, type: 'invalid_request_error', when: 'The request did not arrive completely in time' },
  'slot.conflict': {
    status: 409,
    type: 'conflict_error',
    when: 'The slot has changed since the `resourceVersion` in `If-Match`; read it again and repeat the edit',
    retry: false,
  },
  'request.too_large': { status: 413, type: 'invalid_request_error', when: 'The body is larger than `SVC_BODY_LIMIT`' },
  'request.media_type': { status: 415, type: 'invalid_request_error', when: 'The route does not accept the media type of the body' },
  'slot.invalid': {
    status: 422,
    type: 'invalid_request_error',
    when: 'The slot document does not match the schema; the message names each invalid key',
  },
  'model.unsupported': { status: 422, type: 'invalid_request_error', when: 'The model in the slot does not support this kind of request' },
  'request.headers_too_large': {
    status: 431,
    type: 'invalid_request_error',
    when: 'The request line and headers are larger than `SVC_HEADER_LIMIT`',
  },
  'slot.queue_full': {
    status: 429,
    type: 'rate_limit_error',
    when: 'The number of requests parked for the slot has reached `SVC_PARK_LIMIT`',
  },
  'server.internal': { status: 500, type: 'server_error', when: 'The gateway failed internally; search its log for the request id' },
  'upstream.failed': {
    status: 502,
    type: 'upstream_error',
    when: 'The model server closed the connection or sent an invalid HTTP response',
  },
  'slot.loading': {
    status: 503,
    type: 'unavailable_error',
    when: 'The model took longer to load than `SVC_PARK_TIMEOUT`; retry after the time in `Retry-After`',
  },
  'slot.disabled': { status: 503, type: 'unavailable_error', when: 'The slot is not enabled', retry: false },
  'slot.stalled': { status: 503, type: 'unavailable_error', when: 'The slot has stopped retrying; edit or restart it', retry: false },
  'slot.insufficient_memory': {
    status: 503,
    type: 'unavailable_error',
    when: 'The model does not fit into the available memory',
    retry: false,
  },
  'server.overloaded': {
    status: 503,
    type: 'unavailable_error',
    when: 'The limit of connections (`SVC_MAX_CONNECTIONS`) or of buffered bytes (`SVC_BUFFER_LIMIT`) is reached',
  },
  'server.starting': {
    status: 503,
    type: 'unavailable_error',
    when: 'The service has not finished its first reconcile pass, so no slot is known yet; only `/api/health/ready` returns this',
  },
  'server.stalled': {
    status: 503,
    type: 'server_error',
    when: 'The reconcile loop has not finished a pass for too long; only `/api/health/system` returns this',
  },
  'upstream.timeout': {
    status: 504,
    type: 'upstream_error',
    when: 'The model server sent no first byte within `SVC_FIRST_BYTE_TIMEOUT`, or nothing within a stream for `SVC_STREAM_TIMEOUT`',
  },
} as const satisfies Record<string, ErrorFacts>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The body of every error. The four OpenAI keys are always present. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
    readonly origin: 'gateway' | 'upstream';
  };
}

export function errorBody(code: ErrorCode, message: string, param: string | null = null): ErrorBody {
  return { error: { message, type: ERROR_CODES[code].type, param, code, origin: 'gateway' } };
}
