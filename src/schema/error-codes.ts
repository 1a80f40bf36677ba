/**
 * Every error code that a client of the HTTP API can receive: the source of the documentation and of the error handler. Where the gateway decides on each
 * `slot.*` and `server.*` code is listed in `gateway/decide/route.ts`.
 */

interface ErrorFacts {
  readonly status: number;
  /** OpenAI's `type`. */
  readonly type: string;
  readonly when: string;
  /** Whether a client's automatic retry can help; false sends `x-should-retry: false`. */
  readonly retry?: false;
}

export const ERROR_CODES = {
  'request.invalid': { status: 400, type: 'invalid_request_error', when: 'Malformed JSON, field, header or path; `param` names the field' },
  'auth.required': { status: 401, type: 'authentication_error', when: 'Authentication is on and the request carries no credential' },
  'auth.invalid': { status: 401, type: 'authentication_error', when: 'The bearer token matches no stored token' },
  'auth.scope': { status: 403, type: 'permission_error', when: 'The credential is valid but its scope does not allow this' },
  'route.not_found': { status: 404, type: 'not_found_error', when: 'No such path' },
  'slot.not_found': { status: 404, type: 'not_found_error', when: 'No such slot' },
  'model.not_found': { status: 404, type: 'not_found_error', when: 'No slot answers to this model; the message lists the known names' },
  'route.method': {
    status: 405,
    type: 'invalid_request_error',
    when: 'The path exists, but not with this method; `Allow` lists those it has',
  },
  'request.timeout': { status: 408, type: 'invalid_request_error', when: 'The request did not arrive whole in time' },
  'slot.conflict': {
    status: 409,
    type: 'conflict_error',
    when: 'The edit was based on an older `resourceVersion` (`If-Match`)',
    retry: false,
  },
  'request.too_large': { status: 413, type: 'invalid_request_error', when: 'The body is over `SVC_BODY_LIMIT`' },
  'request.media_type': { status: 415, type: 'invalid_request_error', when: 'The body has a media type that this route does not take' },
  'slot.invalid': {
    status: 422,
    type: 'invalid_request_error',
    when: 'The slot’s document does not pass the schema; the message names each key',
  },
  'model.unsupported': { status: 422, type: 'invalid_request_error', when: 'The slot’s model cannot do what this route asks' },
  'request.headers_too_large': {
    status: 431,
    type: 'invalid_request_error',
    when: 'The request line and headers are over `SVC_HEADER_LIMIT`',
  },
  'slot.queue_full': { status: 429, type: 'rate_limit_error', when: 'As many requests are parked for the slot as `SVC_PARK_LIMIT` allows' },
  'server.internal': { status: 500, type: 'server_error', when: 'A fault of the gateway itself; its log has the request id' },
  'upstream.failed': {
    status: 502,
    type: 'upstream_error',
    when: 'The runtime broke its promise: it closed the connection, or answered what is no HTTP',
  },
  'slot.loading': {
    status: 503,
    type: 'unavailable_error',
    when: 'Loading took longer than `SVC_PARK_TIMEOUT`; `Retry-After` says when to come back',
  },
  'slot.disabled': { status: 503, type: 'unavailable_error', when: 'The slot is not enabled', retry: false },
  'slot.stalled': { status: 503, type: 'unavailable_error', when: 'The slot needs a person: an edit or a restart', retry: false },
  'slot.insufficient_memory': { status: 503, type: 'unavailable_error', when: 'The slot’s model does not fit into memory', retry: false },
  'server.overloaded': { status: 503, type: 'unavailable_error', when: 'Connections or buffered bytes are at their limit' },
  'server.starting': {
    status: 503,
    type: 'unavailable_error',
    when: 'No pass has finished since the start, so that no slot is known yet; only `/api/health/ready` says so',
  },
  'server.stalled': {
    status: 503,
    type: 'server_error',
    when: 'The reconcile loop has not finished a pass for too long; only `/api/health/system` says so',
  },
  'upstream.timeout': { status: 504, type: 'upstream_error', when: 'No first byte, or silence inside a stream, for longer than allowed' },
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
