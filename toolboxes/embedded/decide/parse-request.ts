/** Parses request bodies. Requests that the engine does not support become refusals in the format of llama-server. Pure. */

export interface Refusal {
  readonly status: number;
  readonly type:
    | 'invalid_request_error'
    | 'not_supported_error'
    | 'exceed_context_size_error'
    | 'server_error'
    | 'unavailable_error'
    | 'not_found_error';
  readonly message: string;
  readonly extra?: Readonly<Record<string, number>>;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

export interface Sampling {
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repeatPenalty: number;
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly ignoreEnd: boolean;
}

export interface Generation {
  readonly sampling: Sampling;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export interface Message {
  readonly role: string;
  readonly content: string;
}

export type TextInput = string | readonly number[];

type Body = Readonly<Record<string, unknown>>;

export const refuse = (status: number, type: Refusal['type'], message: string): { readonly ok: false; readonly refusal: Refusal } => ({
  ok: false,
  refusal: { status, type, message },
});
const invalid = (message: string) => refuse(400, 'invalid_request_error', message);

export function parseBody(text: string): Outcome<Body> {
  try {
    const body: unknown = JSON.parse(text);
    if (isRecord(body)) return { ok: true, value: body };
    return invalid('Send a JSON object');
  } catch (error) {
    return invalid(`Send valid JSON: ${error instanceof Error ? error.message : 'it could not be parsed'}`);
  }
}

export function parseChat(body: Body): Outcome<Generation & { readonly messages: readonly Message[] }> {
  if (!Array.isArray(body['messages']) || body['messages'].length === 0)
    return invalid('Set "messages" to an array with at least one message');
  if (Array.isArray(body['tools']) && body['tools'].length > 0 && body['tool_choice'] !== 'none') {
    return refuse(422, 'not_supported_error', 'Install llama-server to use tools: the embedded engine does not support them');
  }
  const messages: Message[] = [];
  for (const message of body['messages']) {
    const role = isRecord(message) ? message['role'] : undefined;
    const content = isRecord(message) ? textOf(message['content']) : undefined;
    if (typeof role !== 'string') return invalid('Set the "role" of each message');
    if (content === undefined)
      return refuse(
        422,
        'not_supported_error',
        'Install llama-server to send other content than text: the embedded engine does not support it',
      );
    messages.push({ role, content });
  }
  const generation = parseGeneration(body);
  return generation.ok ? { ok: true, value: { ...generation.value, messages } } : generation;
}

export function parseCompletion(body: Body): Outcome<Generation & { readonly prompt: TextInput }> {
  const prompts = parseInputs(body['prompt']);
  const [prompt] = prompts ?? [];
  if (prompts === undefined || prompt === undefined) return invalid('Set "prompt" to a string or an array of tokens');
  if (prompts.length > 1)
    return refuse(
      422,
      'not_supported_error',
      'Send one prompt per request, or install llama-server: the embedded engine does not support several',
    );
  const generation = parseGeneration(body);
  return generation.ok ? { ok: true, value: { ...generation.value, prompt } } : generation;
}

export function parseEmbedding(body: Body): Outcome<{ readonly inputs: readonly TextInput[]; readonly base64: boolean }> {
  const inputs = parseInputs(body['input'] ?? body['content']);
  if (inputs === undefined || inputs.length === 0) return invalid('Set "input" to a string, an array of strings, or an array of tokens');
  const format = body['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64') return invalid('Set "encoding_format" to "float" or "base64"');
  return { ok: true, value: { inputs, base64: format === 'base64' } };
}

export function parseRerank(body: Body): Outcome<{ readonly query: string; readonly documents: readonly string[]; readonly topN: number }> {
  const { query, documents } = body;
  if (typeof query !== 'string') return invalid('Set "query" to a string');
  if (!Array.isArray(documents) || documents.length === 0 || !documents.every((item) => typeof item === 'string')) {
    return invalid('Set "documents" to a non-empty array of strings');
  }
  const topN = body['top_n'] ?? documents.length;
  if (typeof topN !== 'number' || !Number.isInteger(topN) || topN < 1) return invalid('Set "top_n" to a whole number of at least 1');
  return { ok: true, value: { query, documents, topN } };
}

/** The defaults are those of llama-server. */
function parseGeneration(body: Body): Outcome<Generation> {
  for (const key of ['logprobs', 'logit_bias', 'grammar', 'json_schema'] as const) {
    if (isSet(body[key]))
      return refuse(422, 'not_supported_error', `Install llama-server to use "${key}": the embedded engine does not support it`);
  }
  const format = body['response_format'];
  if (isRecord(format) && format['type'] !== 'text') {
    return refuse(422, 'not_supported_error', 'Install llama-server to use "response_format": the embedded engine only returns plain text');
  }
  if (isSet(body['n']) && body['n'] !== 1)
    return refuse(422, 'not_supported_error', 'Set "n" to 1 or install llama-server: the embedded engine returns one choice per request');
  const numbers = parseNumbers(body, [
    'temperature',
    'top_k',
    'top_p',
    'min_p',
    'repeat_penalty',
    'seed',
    'max_tokens',
    'max_completion_tokens',
    'n_predict',
  ]);
  if (!numbers.ok) return numbers;
  const { value } = numbers;
  const stops = typeof body['stop'] === 'string' ? [body['stop']] : (body['stop'] ?? []);
  if (!isTexts(stops)) return invalid('Set "stop" to a string or an array of strings');
  const maxTokens = value['max_completion_tokens'] ?? value['max_tokens'] ?? value['n_predict'];
  const seed = value['seed'];
  const options = body['stream_options'];
  return {
    ok: true,
    value: {
      stream: body['stream'] === true,
      includeUsage: isRecord(options) && options['include_usage'] === true,
      sampling: {
        maxTokens: maxTokens === undefined || maxTokens < 0 ? undefined : Math.floor(maxTokens),
        temperature: Math.max(0, value['temperature'] ?? 0.8),
        topK: value['top_k'] ?? 40,
        topP: value['top_p'] ?? 0.95,
        minP: value['min_p'] ?? 0.05,
        repeatPenalty: value['repeat_penalty'] ?? 1,
        seed: seed === undefined || seed < 0 ? undefined : Math.floor(seed) % 2 ** 32,
        stop: stops.filter((stop) => stop !== ''),
        ignoreEnd: body['ignore_eos'] === true,
      },
    },
  };
}

function parseNumbers(body: Body, keys: readonly string[]): Outcome<Readonly<Record<string, number>>> {
  const numbers: Record<string, number> = {};
  for (const key of keys) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number' || !Number.isFinite(value)) return invalid(`Set "${key}" to a number`);
    numbers[key] = value;
  }
  return { ok: true, value: numbers };
}

/** Returns one or several inputs, or undefined if the value is neither. */
function parseInputs(input: unknown): readonly TextInput[] | undefined {
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input)) return undefined;
  if (isTokens(input)) return input.length === 0 ? [] : [input];
  const items: readonly unknown[] = input;
  return items.every(isTextOrTokens) ? items.filter(isTextOrTokens) : undefined;
}

function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part: unknown) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : undefined));
  return texts.includes(undefined) ? undefined : texts.join('');
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(isRecord(value) && Object.keys(value).length === 0);
}

function isRecord(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isInteger(item) && item >= 0);
}

function isTextOrTokens(value: unknown): value is TextInput {
  return typeof value === 'string' || isTokens(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
