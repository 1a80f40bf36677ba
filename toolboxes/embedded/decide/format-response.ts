/** Formats response bodies like OpenAI and llama-server. Pure. */
import type { Refusal } from './parse-request.ts';

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

export type FinishReason = 'stop' | 'length';

/** The fields that are the same in all chunks of a response. */
export interface Head {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly kind: 'chat' | 'completion';
}

export function errorBody(refusal: Refusal): object {
  return { error: { message: refusal.message, type: refusal.type, code: refusal.status, ...refusal.extra } };
}

function usageBody(usage: Usage): object {
  return {
    completion_tokens: usage.completionTokens,
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}

export function wholeBody(head: Head, text: string, finish: FinishReason, usage: Usage): object {
  const choice =
    head.kind === 'chat'
      ? { index: 0, finish_reason: finish, message: { role: 'assistant', content: text } }
      : { text, index: 0, logprobs: null, finish_reason: finish };
  return {
    choices: [choice],
    created: head.created,
    model: head.model,
    object: head.kind === 'chat' ? 'chat.completion' : 'text_completion',
    usage: usageBody(usage),
    id: head.id,
  };
}

/** Formats a chunk of a stream: its first one (chat only), a piece of text, or its last one. */
export function chunkBody(head: Head, piece: { readonly open?: true; readonly text?: string; readonly finish?: FinishReason }): object {
  const finish = piece.finish ?? null;
  const delta = piece.open === true ? { role: 'assistant', content: null } : piece.text === undefined ? {} : { content: piece.text };
  const choice =
    head.kind === 'chat'
      ? { index: 0, finish_reason: finish, delta }
      : { text: piece.text ?? '', index: 0, logprobs: null, finish_reason: finish };
  return { choices: [choice], ...common(head) };
}

export function usageChunkBody(head: Head, usage: Usage): object {
  return { choices: [], ...common(head), usage: usageBody(usage) };
}

export function embeddingsBody(model: string, vectors: readonly (readonly number[])[], promptTokens: number, base64: boolean): object {
  return {
    model,
    object: 'list',
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    data: vectors.map((vector, index) => ({
      embedding: base64 ? littleEndianBase64(vector) : vector,
      index,
      object: 'embedding',
      ...(base64 ? { encoding_format: 'base64' } : {}),
    })),
  };
}

export function rerankBody(model: string, scores: readonly number[], topN: number, promptTokens: number): object {
  const results = scores
    .map((score, index) => ({ index, relevance_score: score }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score);
  return { model, object: 'list', usage: { prompt_tokens: promptTokens, total_tokens: promptTokens }, results: results.slice(0, topN) };
}

export function modelsBody(model: string, aliases: readonly string[], created: number, context: number): object {
  const entry = { id: model, aliases, object: 'model', created, owned_by: 'llamacpp', meta: { n_ctx: context } };
  return { object: 'list', data: [entry] };
}

function common(head: Head): object {
  return {
    created: head.created,
    id: head.id,
    model: head.model,
    object: head.kind === 'chat' ? 'chat.completion.chunk' : 'text_completion',
  };
}

/** Encodes a vector in OpenAI's `base64` format: little-endian 32-bit floats on every machine. */
function littleEndianBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString('base64');
}
