/** Converts an upstream's error to the shape of OpenAI's. Upstreams are not trusted: only four text fields are copied, with a limited length. */
import type { ErrorBody } from '../../schema/words/error-codes.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { shorten } from '../../schema/shorten.ts';

const MESSAGE_LIMIT = 2000;
const WORD_LIMIT = 100;

/** Upstream error types for which OpenAI, or the service itself, has a code that clients know. */
const KNOWN_CODES: Readonly<Record<string, string>> = {
  exceed_context_size_error: 'context_length_exceeded',
  not_supported_error: 'model.unsupported',
};

export function normaliseUpstreamError(status: number, body: string): ErrorBody {
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

/** Returns whether llama.cpp refused the request because its model is not in memory yet. The request was not processed and may be sent again. */
export function isStillLoading(status: number, body: ErrorBody): boolean {
  return status === 503 && body.error.type === 'unavailable_error' && body.error.message === 'Loading model';
}

type Fields = Readonly<Record<string, unknown>>;

function errorFieldsOf(body: string): Fields {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return {};
  }
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

function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? shorten(value, WORD_LIMIT) : undefined;
}

function typeOfStatus(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 400 && status < 500 ? 'invalid_request_error' : 'upstream_error';
}
