/** Turns a request for embeddings into one for FastFlowLM, and its answer into OpenAI's. The server knows texts and numbers only: no tokens, no base64. Pure. */
import { z } from 'zod';
import type { TranslatableBody, TranslationEnd } from '../../translation.ts';
import { refuse, tableOf, type Refusal } from './chat-request.ts';
import { unusable } from './npu-answers.ts';
import { EMBEDDER } from './npu-models.ts';

export interface AskedVectors {
  readonly ok: true;
  readonly texts: readonly string[];
  readonly isBase64: boolean;
}

const Texts = z.union([
  z
    .string()
    .min(1)
    .transform((text) => [text]),
  z.array(z.string().min(1)).min(1).max(2048),
]);
const Format = z.enum(['float', 'base64']).optional();
const Vectors = z.object({ data: z.array(z.object({ embedding: z.array(z.number()).min(1) })) });

export function askedVectors(body: TranslatableBody): AskedVectors | { readonly ok: false; readonly refusal: Refusal } {
  const table = tableOf(body) ?? {};
  const texts = Texts.safeParse(table['input']).data;
  if (texts === undefined) {
    const message = 'Set "input" to a text, or to a list of up to 2048 texts: the NPU server takes no tokens and no empty texts';
    return { ok: false, refusal: refuse(message, 'input') };
  }
  const format = Format.safeParse(table['encoding_format'] ?? undefined);
  if (!format.success) return { ok: false, refusal: refuse('Set "encoding_format" to "float" or "base64"', 'encoding_format') };
  if (typeof table['dimensions'] === 'number') {
    return { ok: false, refusal: refuse('Leave out "dimensions": the NPU server cannot shorten vectors', 'dimensions') };
  }
  return { ok: true, texts, isBase64: format.data === 'base64' };
}

export function embeddingRequest({ texts }: AskedVectors): string {
  return JSON.stringify({ model: EMBEDDER, input: texts });
}

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

/** Numbers of 32 bits, the lowest byte first, as OpenAI's clients ask for by default. */
function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((number, index) => bytes.writeFloatLE(number, index * 4));
  return bytes.toString('base64');
}
