/**
 * Every error code that a client of the HTTP API can receive: the source of the documentation and of the error handler.
 * Where the gateway decides on each `slot.*` and `server.*` code is listed in `gateway/route/decide/route.ts`.
 */

interface ErrorFacts {
  readonly status: number;
  /** OpenAI's `type`. */
  readonly type: string;
  readonly when: string;
  /** False where an automatic retry cannot help; the response then carries `x-should-retry: false`. */
  readonly retry?: false;
}

/** OpenAI's `type` of each status; of all others, it is `invalid_request_error`. */
const TYPES: Readonly<Partial<Record<number, string>>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  429: 'rate_limit_error',
  500: 'server_error',
  502: 'upstream_error',
  503: 'unavailable_error',
  508: 'upstream_error',
  504: 'upstream_error',
};

export const ERROR_CODES = {
  'request.invalid': error(400, 'The JSON, the multipart body, a field, a header or the path is malformed; `param` names the field'),
  'audio.invalid': error(400, 'The recording is not audio, is damaged, or is too short or too long'),
  'model.unsupported': error(400, 'The model or its server does not support this kind of request'),
  'model.no_vision': error(400, 'The chat contains an image, and the model takes none'),
  'model.no_audio': error(400, 'The chat contains a recording, and the model takes none'),
  'auth.required': error(401, 'Authentication is enabled and the request has no credentials'),
  'auth.invalid': error(401, 'The bearer token matches no stored token'),
  'auth.expired': error(401, 'The bearer token was valid until its `expires_at`'),
  'auth.scope': error(403, 'The credentials are valid, but their scope does not allow this request'),
  'limit.model': permanent(403, 'The caller may use other models only; the message lists them'),
  'request.cross_site': permanent(
    403,
    'A web page of another site sent the request, or the name in `Host` is not known: see docs/security.md',
  ),
  'route.not_found': error(404, 'The path does not exist; the message names the one that was probably meant'),
  'slot.not_found': error(404, 'The slot does not exist'),
  'model.not_found': error(404, 'No slot serves this model; the message lists the names for this kind of request'),
  'image.not_found': error(404, 'The image does not exist, or the cache no longer has it'),
  'voice.not_found': error(404, 'No voice is stored under this name'),
  'profile.not_found': error(404, 'There is no profile of this name; the message lists the known names'),
  'revision.not_found': error(404, 'The slot has no such revision, or none to return to; the message lists those that are kept'),
  'source.not_found': error(404, 'No repository declares the configuration of this service: `SVC_GIT_URL` is not set'),
  'request.not_found': error(404, 'No request with this id runs here; it may have ended'),
  'token.not_found': error(404, 'The token does not exist'),
  'capture.not_found': error(404, 'The capture does not exist, or its file was deleted after a day'),
  'model.in_use': permanent(409, 'A slot uses the model, so it cannot be removed; the message names the slot'),
  'route.method': error(405, 'The path does not support this method; `Allow` lists those that it supports'),
  'request.timeout': error(408, 'The request did not arrive completely in time'),
  'request.cancelled': permanent(409, 'An operator has cancelled the request while it ran'),
  'slot.conflict': permanent(409, 'The slot has changed since the version in `If-Match`; read it again'),
  'rollout.managed': permanent(
    409,
    'Another program, such as Argo CD or Flux, declares the slot: revert the commit in its repository instead',
  ),
  'source.managed': permanent(
    409,
    'A repository declares the slot, and local edits would be put back (`SVC_GIT_SELF_HEAL`): edit its file there, or suspend the source first',
  ),
  'source.suspended': permanent(409, 'The source is suspended: resume it first with `svcctl source resume`'),
  'rollout.paused': permanent(409, 'Rollouts of the slot are paused: resume them first with `svcctl rollout resume`'),
  'profile.conflict': permanent(
    409,
    'The profile or a slot has changed since the version in `If-Match`, or a profile of this name exists already',
  ),
  'plan.refused': permanent(409, 'The plan of an agent cannot be applied, approved or rejected; the message says why (docs/mcp.md)'),
  'voice.exists': permanent(409, 'A voice is already stored under this name'),
  'request.too_large': error(
    413,
    'The body is larger than the route permits; inference requests may have `SVC_BODY_LIMIT` bytes, recordings `SVC_AUDIO_LIMIT`',
  ),
  'request.media_type': error(415, 'The route does not accept the media type of the body'),
  'request.range': error(416, 'The image has no bytes in the range of the header `Range`'),
  'slot.invalid': error(422, 'The slot document does not match the schema; the message names the invalid keys'),
  'profile.invalid': permanent(
    422,
    'A slot text has a mistake or cannot be read, so that the profile cannot be saved or applied; the message names file and line',
  ),
  'profile.unsupported': permanent(
    422,
    'Profiles are kept on hosts only, and as many as the message says; in a cluster, use Kustomize or several manifests',
  ),
  'model.unavailable': permanent(
    422,
    'The model cannot be pulled or removed: nothing provides it, its licence was not accepted, or it does not fit; the message says what to do',
  ),
  'model.search_unavailable': permanent(
    422,
    'The Hub cannot be searched: `SVC_MODEL_SEARCH` is `off`, or the Hub refuses the token; the message says what to do',
  ),
  'audio.cloning_unsupported': error(422, 'The model in the slot has only voices of its own, and the request names a stored one'),
  'voice.limit_reached': permanent(422, 'As many voices are stored as `SVC_VOICE_LIMIT` permits'),
  'voice.unsupported': permanent(422, 'Voices cannot be stored here, or not in this way; the message says what to do'),
  'capture.unsupported': permanent(
    422,
    'Requests cannot be captured: in a cluster, with `SVC_CAPTURE=off`, with a full disk, or by too many captures at once',
  ),
  'image.size_unsupported': error(422, 'Models of this family cannot draw images of this size'),
  'request.headers_too_large': error(431, 'The request line and headers are larger than `SVC_HEADER_LIMIT`'),
  'auth.busy': error(429, 'Too many tokens that were not used before are being checked; retry after `Retry-After`'),
  'limit.requests': error(429, 'The caller has sent as many requests within a minute as it may; retry after `Retry-After`'),
  'limit.tokens': error(429, 'The caller has used as many tokens within a minute or a day as it may; retry after `Retry-After`'),
  'limit.in_flight': error(429, 'The caller has as many requests in flight as it may; retry when one has ended'),
  'slot.queue_full': error(
    429,
    'As many requests wait for the slot as `SVC_PARK_LIMIT` or `limits.max_queue` allows, or this one waited for its turn for too long',
  ),
  'server.internal': error(500, 'The gateway failed internally; search its log for the request id'),
  'upstream.failed': error(502, 'The model server closed the connection or sent an invalid HTTP response'),
  'image.failed': error(502, 'The image server could not draw the image; the message says what to do'),
  'model.source_failed': error(502, 'The server that provides the model does not answer, or limits requests'),
  'slot.loading': error(503, 'The model took longer to load than `SVC_PARK_TIMEOUT`, or cannot be fetched now; retry after `Retry-After`'),
  'slot.disabled': permanent(503, 'The slot is disabled'),
  'slot.stalled': permanent(503, 'The slot has stopped retrying; edit or restart it'),
  'slot.insufficient_memory': permanent(503, 'The model does not fit into the available memory'),
  'server.overloaded': error(
    503,
    'The limit `SVC_MAX_CONNECTIONS`, `SVC_REALTIME_LIMIT`, `SVC_BUFFER_LIMIT` or `SVC_SPOOL_LIMIT` is reached',
  ),
  'server.starting': error(503, 'The first reconcile pass has not finished: the service does not know its slots yet'),
  'server.stalled': {
    ...error(503, 'No reconcile pass has finished for too long; only `/api/health/system` returns this'),
    type: 'server_error',
  },
  'upstream.timeout': error(504, 'The model server exceeded `SVC_FIRST_BYTE_TIMEOUT` or `SVC_STREAM_TIMEOUT`'),
  'request.loop': permanent(508, 'The request has come back, or was passed on by too many services: slots of these lead to each other'),
} satisfies Record<string, ErrorFacts>;

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

function error(status: number, when: string): ErrorFacts {
  return { status, type: TYPES[status] ?? 'invalid_request_error', when };
}

function permanent(status: number, when: string): ErrorFacts {
  return { ...error(status, when), retry: false };
}
