/**
 * What an answer of FastFlowLM means. It answers most errors with status 200, either as `{"error": "text"}` or as an object with a code of its own, and requests for a model
 * that it did not load with `null`. Nothing of it is trusted. Pure.
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { TranslationEnd, UpstreamAnswer } from '../../translation.ts';

export type Verdict =
  | { readonly kind: 'answer'; readonly value: Readonly<Record<string, unknown>> }
  /** Others wait already, as many as the server takes. It did not look at the request. */
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
/** What a client can change, as far as the words tell; anything else is a failure of the server. */
const REQUEST_AT_FAULT = /not supported|only supports|is required|invalid|type must be|not allowed|parse error|key .* not found/i;

export function judgeAnswer(answer: UpstreamAnswer): Verdict {
  const { status, body } = answer;
  const value = parseJson(new TextDecoder().decode(body));
  const failure = ErrorBody.safeParse(value).data?.error;
  if (failure !== undefined) return judgeError(answer, typeof failure === 'string' ? { message: failure } : failure);
  if (status >= 400 && status < 600) return { kind: 'end', end: { kind: 'upstream-error', answer } };
  if (value === null) {
    const message = 'Restart the slot, and read its log if this happens again: the NPU server runs without the model for this request';
    return { kind: 'end', end: { kind: 'failed', message } };
  }
  const table = status === 200 ? Table.safeParse(value).data : undefined;
  return table === undefined ? { kind: 'end', end: unusable() } : { kind: 'answer', value: table };
}

export function unusable(): TranslationEnd {
  return { kind: 'failed', message: 'The NPU server answered in a form that cannot be translated' };
}

function judgeError(answer: UpstreamAnswer, { message, type, code }: z.output<typeof ErrorObject>): Verdict {
  if (QUEUE_FULL.test(message)) return { kind: 'queue-full' };
  const isTooLong = TOO_LONG.test(message);
  const status = statusOf(answer.status, isTooLong || REQUEST_AT_FAULT.test(message), code);
  const text = isTooLong ? 'The conversation is longer than the context of the model; shorten it, or set "context" of the slot' : message;
  const word = isTooLong ? 'exceed_context_size_error' : (type ?? (status < 500 ? 'invalid_request_error' : 'server_error'));
  const body = new TextEncoder().encode(JSON.stringify({ error: { message: text, type: word } }));
  return { kind: 'end', end: { kind: 'upstream-error', answer: { status, headers: new Map(), body } } };
}

/** The code in the body says more than the status, but it is 500 for whatever was thrown, so the words have the last say. */
function statusOf(status: number, isRequestAtFault: boolean, code: number | undefined): number {
  if (isRequestAtFault) return 400;
  if (status >= 400 && status < 600) return status;
  return code !== undefined && code >= 400 && code < 600 ? code : 500;
}
