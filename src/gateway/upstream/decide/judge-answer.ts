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
  readonly input: number;
  readonly output: number;
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
const INPUT = /"(?:prompt_tokens|input_tokens)"\s*:\s*(\d{1,9})/;
const OUTPUT = /"(?:completion_tokens|output_tokens)"\s*:\s*(\d{1,9})/;

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
    return errorEventOf(dialect, dialect.errorBody(normaliseUpstreamError(status, json).error, status, requestId));
  });
}

export function errorEventOf({ errorEvent }: Dialect, body: object): string {
  const name = errorEvent === undefined ? '' : `event: ${errorEvent}\n`;
  return `${name}data: ${JSON.stringify(body)}\n\n`;
}

/** `tail`: the end of the body, one character per byte. Counts are for metrics only, so the search is cheap. */
export function findUsage(tail: string): Usage | undefined {
  const at = tail.lastIndexOf('"usage":{');
  if (at === -1) return undefined;
  const text = tail.slice(at, at + 1000);
  const input = INPUT.exec(text);
  if (input === null) return undefined;
  return { input: Number(input[1]), output: Number(OUTPUT.exec(text)?.[1] ?? 0) };
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
