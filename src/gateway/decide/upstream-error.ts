/** An upstream's error in the contract's shape. What comes from an upstream is not trusted: four fields are taken over, as text, cut to size. */
import type { ErrorBody } from '../../schema/error-codes.ts';

const MESSAGE_LIMIT = 2000;
const WORD_LIMIT = 100;

/** Codes that clients know under OpenAI's name. */
const KNOWN_CODES: Readonly<Record<string, string>> = { exceed_context_size_error: 'context_length_exceeded' };

export function normaliseUpstreamError(status: number, body: string): ErrorBody {
  const facts = factsOf(body);
  const type = wordOf(facts['type']) ?? typeOfStatus(status);
  return {
    error: {
      message: cut(messageOf(facts, body) ?? `The upstream answered ${status} without a message`, MESSAGE_LIMIT),
      type,
      param: wordOf(facts['param']) ?? null,
      code: wordOf(facts['code']) ?? KNOWN_CODES[type] ?? null,
      origin: 'upstream',
    },
  };
}

/** llama.cpp says this to every request until its model is in memory: the request was not looked at and may be sent again. */
export function isStillLoading(status: number, body: ErrorBody): boolean {
  return status === 503 && body.error.type === 'unavailable_error' && body.error.message === 'Loading model';
}

type Facts = Readonly<Record<string, unknown>>;

function factsOf(body: string): Facts {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return {};
  }
  if (!isRecord(parsed)) return {};
  const { error } = parsed;
  if (typeof error === 'string') return { ...parsed, message: error };
  return isRecord(error) ? error : parsed;
}

function isRecord(value: unknown): value is Facts {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function messageOf(facts: Facts, body: string): string | undefined {
  for (const key of ['message', 'detail']) {
    const value = facts[key];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
  const text = body.trim();
  return text === '' || text.startsWith('<') || text.startsWith('{') ? undefined : text;
}

function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? cut(value, WORD_LIMIT) : undefined;
}

function typeOfStatus(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 400 && status < 500 ? 'invalid_request_error' : 'upstream_error';
}

function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}
