/** Judges an upstream's answer: normalised errors, answers to translate, and token counts. Pure. */
import type { ErrorBody } from '../../../schema/words/error-codes.ts';
import type { Dialect } from '../../route/decide/dialects.ts';
import type { ClientMistake } from '../../../providers/provider.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

type Verdict =
  /** The request was not processed and may be sent again; `body` is the answer if it cannot be. */
  | { readonly kind: 'loading'; readonly body: ErrorBody }
  /** `status`: to send, which may be another one than the upstream's. */
  | { readonly kind: 'error'; readonly status: number; readonly body: ErrorBody }
  | { readonly kind: 'translated'; readonly body: object }
  | { readonly kind: 'unusable'; readonly message: string };

export interface Usage {
  /** Tokens of the prompt, with those of `cached`. */
  readonly input: number;
  readonly output: number;
  /** Tokens of the prompt that the server had computed before. Undefined if it does not say. */
  readonly cached?: number | undefined;
  /** The server counted nothing: `output` was guessed from the length of the stream, `input` is 0. */
  readonly isEstimated?: true | undefined;
}

const MESSAGE_LIMIT = 2000;
const WORD_LIMIT = 100;
/** Upstream error types for which OpenAI, or the service itself, has a code that clients know. */
const KNOWN_CODES: Readonly<Record<string, string>> = {
  exceed_context_size_error: 'context_length_exceeded',
  not_supported_error: 'model.unsupported',
};
/** Clients send a request again for 422 (LangChain) and 501 (all). */
const MISTAKE_STATUS = 400;
/** An event whose data is an object that begins with `error`, as no event of the Messages API does. */
const ERROR_EVENT = /^(?:event: ?error\r?\n)?(?:data|error): ?(\{"error".*\})\r?\n\r?\n/gm;
/** Longer numbers are nonsense: no context has 100 million tokens. */
const INPUT = /"(?:prompt_tokens|input_tokens)"\s*:\s*(\d{1,8})(?!\d)/;
const OUTPUT = /"(?:completion_tokens|output_tokens)"\s*:\s*(\d{1,8})(?!\d)/;
const CACHED = /"cached_tokens"\s*:\s*(\d{1,8})(?!\d)/;
/** Unlike OpenAI, Anthropic does not count them as `input_tokens`. */
const READ_FROM_CACHE = /"cache_read_input_tokens"\s*:\s*(\d{1,8})(?!\d)/;
/** The object of llama-server, which counts the cached ones apart too. */
const TIMINGS = {
  computed: /"prompt_n"\s*:\s*(\d{1,8})(?!\d)/,
  output: /"predicted_n"\s*:\s*(\d{1,8})(?!\d)/,
  cached: /"cache_n"\s*:\s*(\d{1,8})(?!\d)/,
};
const OBJECT_CHARACTERS = 1000;
const EVENT_END = /\r?\n\r?\n/g;

interface JudgedAnswer {
  readonly status: number;
  readonly text: string;
  readonly mistakes?: readonly ClientMistake[] | undefined;
}

export function judgeAnswer({ status, text, mistakes = [] }: JudgedAnswer, { translateAnswer }: Dialect, requestId: string): Verdict {
  if (status >= 300 && status < 400)
    return unusable(`The upstream answered an inference request with status ${status}, which is not supported`);
  if (status >= 400) {
    const body = normaliseUpstreamError(status, text);
    const mistake = mistakes.find((known) => isMistake(known, body));
    if (mistake !== undefined) {
      const error = { ...body.error, type: 'invalid_request_error', code: mistake.code };
      return { kind: 'error', status: MISTAKE_STATUS, body: { error } };
    }
    return isStillLoading(status, body) ? { kind: 'loading', body } : { kind: 'error', status, body };
  }
  const body = translateAnswer?.(parseJson(text), requestId);
  return body === undefined
    ? unusable('The upstream answered in a form that cannot be translated for this path')
    : { kind: 'translated', body };
}

/** Returns stream events with errors in the dialect's shape, except errors that arrive in two pieces. */
export function translateStreamErrors(events: string, dialect: Dialect, requestId: string): string {
  return events.replace(ERROR_EVENT, (event, json: string) => {
    const status = statusOf(json);
    if (status === undefined) return event;
    const body = dialect.errorBody(normaliseUpstreamError(status, json).error, status, requestId);
    return errorEventOf(dialect, JSON.stringify(body));
  });
}

/** `body`: the error as JSON. */
export function errorEventOf({ errorEvent }: Dialect, body: string): string {
  const name = errorEvent === undefined ? '' : `event: ${errorEvent}\n`;
  return `${name}data: ${body}\n\n`;
}

/**
 * `tail`: the end of the body, one character per byte. Counts change no answer, so the search is cheap. `begun`: what
 * the beginning of the stream said, since events of the Messages API count the prompt there and the answer at the end.
 */
export function findUsage(tail: string, begun?: Usage): Usage | undefined {
  const at = tail.lastIndexOf('"usage":{');
  if (at === -1) return findTimings(tail);
  const text = tail.slice(at, at + OBJECT_CHARACTERS);
  const input = numberOf(INPUT, text);
  const output = numberOf(OUTPUT, text);
  if (input === undefined) return begun === undefined || output === undefined ? findTimings(tail) : { ...begun, output };
  const apart = numberOf(READ_FROM_CACHE, text);
  return usageOf({ input: input + (apart ?? 0), output, cached: apart ?? numberOf(CACHED, text) });
}

/** The last chunk of a stream of llama-server has `timings` also where the client asked for no `usage`. */
function findTimings(tail: string): Usage | undefined {
  const at = tail.lastIndexOf('"timings":{');
  if (at === -1) return undefined;
  const text = tail.slice(at, at + OBJECT_CHARACTERS);
  const computed = numberOf(TIMINGS.computed, text);
  const output = numberOf(TIMINGS.output, text);
  if (computed === undefined || output === undefined) return undefined;
  const cached = numberOf(TIMINGS.cached, text);
  return usageOf({ input: computed + (cached ?? 0), output, cached });
}

/** `cached` undefined: not known. More than the whole prompt is nonsense. */
const usageOf = ({ input, output = 0, cached }: Pick<Usage, 'input' | 'cached'> & { readonly output: number | undefined }): Usage =>
  cached === undefined ? { input, output } : { input, output, cached: Math.min(cached, input) };

function numberOf(pattern: RegExp, text: string): number | undefined {
  const found = pattern.exec(text);
  return found === null ? undefined : Number(found[1]);
}

/** Guesses the tokens of a stream that was cut off or not counted: servers send about one event for each. */
export function estimateUsage(bytes: number, tail: string): Usage | undefined {
  const events = tail.match(EVENT_END)?.length ?? 0;
  return events === 0 ? undefined : { input: 0, output: Math.round((bytes * events) / tail.length), isEstimated: true };
}

const unusable = (message: string): Verdict => ({ kind: 'unusable', message });

/** Upstreams are not trusted: only four text fields are copied, with a limited length. */
function normaliseUpstreamError(status: number, body: string): ErrorBody {
  const fields = errorFieldsOf(body);
  const type = wordOf(fields['type']) ?? typeOfStatus(status);
  return {
    error: {
      message: shorten(messageOf(fields, body) ?? `The upstream answered ${status} without a message`, MESSAGE_LIMIT),
      type,
      param: wordOf(fields['param']) ?? null,
      code: wordOf(fields['code']) ?? KNOWN_CODES[type] ?? null,
      origin: 'upstream',
    },
  };
}

function isMistake({ message, type }: ClientMistake, { error }: ErrorBody): boolean {
  return (type === undefined || type === error.type) && (message === undefined || message.test(error.message));
}

/** llama.cpp refused the request because its model is not in memory yet. The request may be sent again. */
function isStillLoading(status: number, body: ErrorBody): boolean {
  return status === 503 && body.error.type === 'unavailable_error' && body.error.message === 'Loading model';
}

type Fields = Readonly<Record<string, unknown>>;

function errorFieldsOf(body: string): Fields {
  const parsed = parseJson(body);
  if (!isTable(parsed)) return {};
  const { error } = parsed;
  if (typeof error === 'string') return { ...parsed, message: error };
  return isTable(error) ? error : parsed;
}

function messageOf(fields: Fields, body: string): string | undefined {
  for (const key of ['message', 'detail']) {
    const value = fields[key];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
  const text = body.trim();
  return text === '' || text.startsWith('<') || text.startsWith('{') ? undefined : text;
}

const wordOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? shorten(value, WORD_LIMIT) : undefined);

function typeOfStatus(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 400 && status < 500 ? 'invalid_request_error' : 'upstream_error';
}

/** llama.cpp writes the status as `code`. Undefined if the text is not JSON. */
function statusOf(json: string): number | undefined {
  const parsed = parseJson(json);
  if (parsed === undefined) return undefined;
  const error = isTable(parsed) ? parsed['error'] : undefined;
  const code = isTable(error) ? error['code'] : undefined;
  return typeof code === 'number' && code >= 400 && code < 600 ? code : 500;
}
