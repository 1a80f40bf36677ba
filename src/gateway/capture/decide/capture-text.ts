/** What a capture keeps of a request and its answer, as a line of JSON. Pure. */
import { HIDDEN } from '../../../schema/words/failure.ts';
import type { FinishedRequest } from '../../exchange-deps.ts';

export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** `isCut`: there were more bytes than are kept. */
export interface KeptBody {
  readonly bytes: Buffer;
  readonly isCut: boolean;
}

export interface CapturedExchange {
  readonly finished: FinishedRequest;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Time to the first byte of the answer; undefined if there was none. */
  readonly firstByteMs: number | undefined;
  readonly request: { readonly headers: HeaderPairs; readonly body: KeptBody };
  /** The body as it was written, in HTTP chunks if the headers say so. `status` undefined: nothing was sent. */
  readonly answer: { readonly status: number | undefined; readonly headers: HeaderPairs; readonly body: KeptBody };
}

/** Headers whose values explain a request. Everything else may be a credential, under a name that nobody knows here. */
const SHOWN: ReadonlySet<string> = new Set([
  ...'accept accept-charset accept-encoding accept-language cache-control connection content-encoding content-length'.split(' '),
  ...'content-type date expect host server transfer-encoding user-agent retry-after retry-after-ms x-should-retry'.split(' '),
  ...'anthropic-beta anthropic-version openai-beta openai-processing-ms openai-version x-accel-buffering'.split(' '),
  ...'request-id x-request-id x-client-request-id x-svc-slot x-svc-fallback x-svc-hops x-forwarded-proto'.split(' '),
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
  ...'arch async helper-method lang os package-version retry-count runtime runtime-version timeout'
    .split(' ')
    .map((what) => `x-stainless-${what}`),
]);
/** Tokens of this service and of others, and schemes of `Authorization`, wherever a client has put them. */
const TOKEN = /(?:^|[^a-z0-9])(?:svc_|sk-|hf_|gh[a-z]_|xox[a-z]-|akia|eyj)[\w-]{4}|(?:^|[^a-z0-9])(?:bearer|basic)[\s:=]/i;
/** A hidden value of this length is hidden wherever it is repeated; shorter ones are words, such as a media type. */
const LEAST_SECRET = 20;

/** Hides the values of all headers that are not known to be harmless, and tokens in those that are. */
export function redactHeaders(headers: HeaderPairs): HeaderPairs {
  const isShown = ([name]: HeaderPairs[number]): boolean => SHOWN.has(name.toLowerCase());
  const secrets = headers
    .filter((header) => !isShown(header))
    .flatMap(([, value]) => [value, ...value.split(/[\s=;,"']+/)])
    .filter(({ length }) => length >= LEAST_SECRET);
  const hide = (text: string): string => (TOKEN.test(text) || secrets.some((secret) => text.includes(secret)) ? HIDDEN : text);
  return headers.map((header) => [hide(header[0]), isShown(header) ? hide(header[1]) : HIDDEN]);
}

/** Names and values in turn, as pairs. */
export const pairsOf = (list: readonly string[]): HeaderPairs =>
  list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ''] as const] : []));

export function captureText({ finished, startedAt, firstByteMs, request, answer }: CapturedExchange): string {
  const isChunked = answer.headers.some(([name, value]) => name.toLowerCase() === 'transfer-encoding' && value === 'chunked');
  const { bytes, isCut } = answer.body;
  return JSON.stringify({
    request_id: finished.requestId ?? null,
    started_at: new Date(startedAt).toISOString(),
    first_byte_seconds: firstByteMs === undefined ? null : firstByteMs / 1000,
    seconds: finished.seconds,
    caller: finished.caller ?? null,
    slot: finished.slot ?? null,
    route: finished.route,
    status: finished.status,
    code: finished.code ?? null,
    request: { headers: redactHeaders(request.headers), ...bodyFields(request.body) },
    answer: {
      status: answer.status ?? null,
      headers: redactHeaders(answer.headers),
      ...bodyFields({ bytes: isChunked ? withoutFrames(bytes) : bytes, isCut }),
    },
  });
}

/** A text as it is, anything else in base64. The last letter of a body that is cut may be missing. */
function bodyFields({ bytes, isCut }: KeptBody) {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    return { body: decoder.decode(bytes, { stream: isCut }), is_cut: isCut };
  } catch {
    return { body_base64: bytes.toString('base64'), is_cut: isCut };
  }
}

const LINE_END = '\r\n';

/** The content of a body in HTTP chunks, which may be cut anywhere. */
export function withoutFrames(bytes: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const start = bytes.indexOf(LINE_END, at) + LINE_END.length;
    const length = start < at + LINE_END.length ? 0 : Number.parseInt(bytes.toString('latin1', at, start), 16);
    if (!(length > 0)) break;
    pieces.push(bytes.subarray(start, start + length));
    at = start + length + LINE_END.length;
  }
  return Buffer.concat(pieces);
}
