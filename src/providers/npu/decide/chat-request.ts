/** Turns a chat of a client into one for FastFlowLM. Pure. */
import type { TranslatableBody, TranslationEnd } from '../../translation.ts';

export type Refusal = Extract<TranslationEnd, { kind: 'refuse' }>;

export type JsonRequest =
  | { readonly ok: true; readonly text: string; readonly isStream: boolean }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * `request_id` names the request at the server, where another client could cancel it, and ends a thread of the server if it is no text. The others are of Ollama's API: they
 * would change what the server keeps loaded.
 */
const NOT_PASSED_ON: ReadonlySet<string> = new Set(['request_id', 'options', 'keep_alive']);

/** `model` always takes the name that the server was started with: for any other one, it would unload its model, and download the other one. */
export function chatRequest(body: TranslatableBody, model: string): JsonRequest {
  const table = tableOf(body);
  if (table === undefined) return { ok: false, refusal: refuse('Send a JSON object with "messages"', 'messages') };
  if (!Array.isArray(table['messages'])) return { ok: false, refusal: refuse('Set "messages" to a list of messages', 'messages') };
  if (typeof table['n'] === 'number' && table['n'] > 1) return { ok: false, refusal: refuse('Leave out "n": the NPU answers once', 'n') };
  const kept = Object.entries(table).filter(([key]) => !NOT_PASSED_ON.has(key));
  return { ok: true, text: JSON.stringify({ ...Object.fromEntries(kept), model }), isStream: table['stream'] === true };
}

export function tableOf(body: TranslatableBody): Readonly<Record<string, unknown>> | undefined {
  if (body.kind !== 'json' || typeof body.value !== 'object' || body.value === null || Array.isArray(body.value)) return undefined;
  return Object.fromEntries(Object.entries(body.value));
}

export function refuse(message: string, param: string): Refusal {
  return { kind: 'refuse', code: 'request.invalid', message, param };
}
