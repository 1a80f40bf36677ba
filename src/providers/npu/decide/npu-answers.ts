/**
 * Requests to FastFlowLM, which answers most errors with status 200, as `{"error": "text"}` or as an object with a
 * code, and requests for a model that it did not load with `null`. Pure.
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { TranslationEnd, UpstreamAnswer, TranslatableBody, FormFile } from '../../translation.ts';
import { EMBEDDER } from './npu-models.ts';

export type Verdict =
  | { readonly kind: 'answer'; readonly value: Readonly<Record<string, unknown>> }
  /** The queue of the server is full. It did not look at the request. */
  | { readonly kind: 'queue-full' }
  | { readonly kind: 'end'; readonly end: TranslationEnd };

const ErrorObject = z.object({
  message: z.string(),
  type: z.string().optional().catch(undefined),
  code: z.int().optional().catch(undefined),
});
const ErrorBody = z.object({ error: z.union([z.string(), ErrorObject]) });
const Table = z.record(z.string(), z.unknown());

const QUEUE_FULL = /^NPU is in use and request queue is full/;
const TOO_LONG = /^Max length reached/;
/** Wording of errors that a client can fix; any other is a failure of the server. */
const REQUEST_AT_FAULT = /not supported|only supports|is required|invalid|type must be|not allowed|parse error|key .* not found/i;

export function judgeAnswer(answer: UpstreamAnswer): Verdict {
  const { status, body } = answer;
  const value = parseJson(new TextDecoder().decode(body));
  const failure = ErrorBody.safeParse(value).data?.error;
  if (failure !== undefined) return judgeError(answer, typeof failure === 'string' ? { message: failure } : failure);
  if (status >= 400 && status < 600) return { kind: 'end', end: { kind: 'upstream-error', answer } };
  if (value === null) {
    const message = 'The NPU server runs without the model for this request; restart the slot, and read its log if this happens again';
    return { kind: 'end', end: { kind: 'failed', message } };
  }
  const table = status === 200 ? Table.safeParse(value).data : undefined;
  return table === undefined ? { kind: 'end', end: unusable() } : { kind: 'answer', value: table };
}

export const unusable = (): TranslationEnd => ({ kind: 'failed', message: 'The NPU server answered in a form that cannot be translated' });

function judgeError(answer: UpstreamAnswer, { message, type, code }: z.output<typeof ErrorObject>): Verdict {
  if (QUEUE_FULL.test(message)) return { kind: 'queue-full' };
  const isTooLong = TOO_LONG.test(message);
  const status = statusOf(answer.status, isTooLong || REQUEST_AT_FAULT.test(message), code);
  const text = isTooLong ? 'The conversation is longer than the context of the model; shorten it, or set "context" of the slot' : message;
  const word = isTooLong ? 'exceed_context_size_error' : (type ?? (status < 500 ? 'invalid_request_error' : 'server_error'));
  const body = new TextEncoder().encode(JSON.stringify({ error: { message: text, type: word } }));
  return { kind: 'end', end: { kind: 'upstream-error', answer: { status, headers: new Map(), body } } };
}

/** The code in the body says more than the status, but is 500 for every exception: the wording decides first. */
function statusOf(status: number, isRequestAtFault: boolean, code: number | undefined): number {
  if (isRequestAtFault) return 400;
  if (status >= 400 && status < 600) return status;
  return code !== undefined && code >= 400 && code < 600 ? code : 500;
}

/** FastFlowLM takes strings only: no tokens, no base64. */
type AskedVectors = { readonly ok: true; readonly texts: readonly string[]; readonly isBase64: boolean };

const Texts = z.union([
  z
    .string()
    .min(1)
    .transform((text) => [text]),
  z.array(z.string().min(1)).min(1).max(2048),
]);
const Format = z.enum(['float', 'base64']).optional();
const Vectors = z.object({ data: z.array(z.object({ embedding: z.array(z.number()).min(1) })) });

export function askedVectors(body: TranslatableBody): AskedVectors | Refused {
  const table = tableOf(body) ?? {};
  const texts = Texts.safeParse(table['input']).data;
  if (texts === undefined)
    return refuse('The NPU server takes no tokens and no empty strings; set "input" to a string or up to 2048 strings', 'input');
  const format = Format.safeParse(table['encoding_format'] ?? undefined);
  if (!format.success) return refuse('Set "encoding_format" to "float" or "base64"', 'encoding_format');
  if (typeof table['dimensions'] === 'number') return refuse('The NPU server cannot shorten vectors; leave out "dimensions"', 'dimensions');
  return { ok: true, texts, isBase64: format.data === 'base64' };
}

export const embeddingRequest = ({ texts }: AskedVectors): string => JSON.stringify({ model: EMBEDDER, input: texts });

/** The server counts no tokens: `usage` is always 0. */
export function embeddingAnswer(value: unknown, { texts, isBase64 }: AskedVectors): TranslationEnd {
  const data = Vectors.safeParse(value).data?.data;
  if (data?.length !== texts.length) return unusable();
  const body = {
    object: 'list',
    data: data.map(({ embedding }, index) => ({ object: 'embedding', index, embedding: isBase64 ? base64Of(embedding) : embedding })),
    model: EMBEDDER,
    usage: { prompt_tokens: 0, total_tokens: 0 },
  };
  return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify(body) };
}

/** Little-endian 32-bit floats: the default of OpenAI's clients. */
function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((number, index) => bytes.writeFloatLE(number, index * 4));
  return bytes.toString('base64');
}

type Shape = 'json' | 'text' | 'stream';
/** `fields`: those that FastFlowLM 1.0.10 takes; older ones leave them aside. */
type AskedText =
  | {
      readonly ok: true;
      readonly file: FormFile;
      readonly shape: Shape;
      readonly fields: readonly { readonly name: string; readonly value: string }[];
    }
  | Refused;

const PASSED_ON = ['language', 'prompt'] as const;

const Text = z.object({ text: z.string() });

/** `temperature` has no effect. The text is asked for as JSON, which every version answers with, and shaped here. */
export function askedText(body: TranslatableBody): AskedText {
  const file = body.kind === 'form' ? body.files.find(({ name }) => name === 'file') : undefined;
  if (body.kind !== 'form' || file === undefined) return refuse('Send a form with the recording as "file"', 'file');
  const field = (name: string): string | undefined => body.fields.findLast((each) => each.name === name)?.value;
  const format = field('response_format') ?? 'json';
  if (format !== 'json' && format !== 'text')
    return refuse('The NPU server has no timestamps; set "response_format" to "json" or "text"', 'response_format');
  const fields = PASSED_ON.flatMap((name) => {
    const value = field(name);
    return value === undefined || value === '' ? [] : [{ name, value }];
  });
  return { ok: true, file, shape: field('stream') === 'true' ? 'stream' : format, fields };
}

export function transcriptionAnswer(value: unknown, shape: Shape): TranslationEnd {
  const text = Text.safeParse(value).data?.text.trim();
  if (text === undefined) return unusable();
  if (shape === 'text') return { kind: 'answer', status: 200, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
  if (shape === 'json') return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify({ text }) };
  const events = [
    { type: 'transcript.text.delta', delta: text },
    { type: 'transcript.text.done', text },
  ];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return { kind: 'answer', status: 200, contentType: 'text/event-stream', body };
}

type Refused = { readonly ok: false; readonly refusal: Extract<TranslationEnd, { kind: 'refuse' }> };
type JsonRequest = { readonly ok: true; readonly text: string; readonly isStream: boolean } | Refused;

/** `request_id` lets others cancel, and crashes a thread if not a string. Ollama's fields would unload models. */
const NOT_PASSED_ON: ReadonlySet<string> = new Set(['request_id', 'options', 'keep_alive']);

/** `model` is always the one of the start: for others the server would unload it and download the other. */
export function chatRequest(body: TranslatableBody, model: string): JsonRequest {
  const table = tableOf(body);
  if (table === undefined) return refuse('Send a JSON object with "messages"', 'messages');
  if (!Array.isArray(table['messages'])) return refuse('Set "messages" to a list of messages', 'messages');
  if (typeof table['n'] === 'number' && table['n'] > 1) return refuse('The NPU server makes one choice; leave out "n"', 'n');
  const kept = Object.entries(table).filter(([key]) => !NOT_PASSED_ON.has(key));
  return { ok: true, text: JSON.stringify({ ...Object.fromEntries(kept), model }), isStream: table['stream'] === true };
}

function tableOf(body: TranslatableBody): Readonly<Record<string, unknown>> | undefined {
  if (body.kind !== 'json' || typeof body.value !== 'object' || body.value === null || Array.isArray(body.value)) return undefined;
  return Object.fromEntries(Object.entries(body.value));
}

const refuse = (message: string, param: string): Refused => ({
  ok: false,
  refusal: { kind: 'refuse', code: 'request.invalid', message, param },
});
