/** Derives the health of a server from its response to a probe. Only a response that a working model must have made passes. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { Health, ProbeResponse } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { decodeVector } from './decode-vector.ts';
import type { GgufModel } from './gguf-model.ts';
import { findNonsense, TOP_TOKENS, type Check } from './find-nonsense.ts';

export interface ProbeRequest {
  readonly path: string;
  readonly body: string;
}

/** The cheapest request that shows that the model answers. A vector in base64 takes a quarter of the bytes: one of 4,096 numbers as text is longer than what is read. */
export const PROBES: Readonly<Record<Check, ProbeRequest>> = {
  completion: { path: '/v1/completions', body: JSON.stringify({ prompt: 'Hi', max_tokens: 1, temperature: 0, cache_prompt: false }) },
  embedding: { path: '/v1/embeddings', body: JSON.stringify({ input: 'Hi', encoding_format: 'base64' }) },
  rerank: { path: '/v1/rerank', body: JSON.stringify({ query: 'Hi', documents: ['Hello'] }) },
};

/** A request of about the same cost, whose answer shows also whether what the model computes makes sense. */
export const READINESS_CHECKS: Readonly<Record<Check, ProbeRequest>> = {
  completion: {
    path: '/v1/completions',
    body: JSON.stringify({ prompt: 'Hi', max_tokens: 1, temperature: 0, cache_prompt: false, logprobs: TOP_TOKENS }),
  },
  embedding: PROBES.embedding,
  rerank: { path: '/v1/rerank', body: JSON.stringify({ query: 'Hi', documents: ['Hi', 'The dog runs home'] }) },
};

/** The length of a quoted server message. */
const MAX_QUOTED_CHARACTERS = 200;

const first = (entry: z.ZodType) => z.tuple([entry], z.unknown());
const isVector = (embedding: unknown): boolean => {
  const vector = decodeVector(embedding);
  return vector !== undefined && vector.length > 0 && vector.every((value) => Number.isFinite(value));
};
const EXPECTED: Readonly<Record<Check, { readonly schema: z.ZodType; readonly what: string }>> = {
  completion: { schema: z.object({ choices: first(z.object({ text: z.string() })) }), what: 'text in "choices"' },
  embedding: {
    schema: z.object({ data: first(z.object({ embedding: z.unknown().refine(isVector) })) }),
    what: 'a vector of numbers in "data"',
  },
  rerank: { schema: z.object({ results: first(z.object({ relevance_score: z.number() })) }), what: 'a score in "results"' },
};
const isZero = (embedding: unknown): boolean => decodeVector(embedding)?.every((value) => value === 0) === true;
/** A damaged model computes zeros. */
const ZeroEmbedding = z.object({ data: first(z.object({ embedding: z.unknown().refine(isZero) })) });
const ErrorBody = z.object({ error: z.object({ message: z.string() }) });

/** What has to be checked before a server with these capabilities takes requests; `probe` where it has none. */
export function checksFor(capabilities: readonly Capability[], probe: Check): readonly Check[] {
  const checks = new Set<Check>();
  for (const capability of capabilities) {
    if (capability === 'chat' || capability === 'completion') checks.add('completion');
    if (capability === 'embedding' || capability === 'rerank') checks.add(capability);
  }
  return checks.size === 0 ? [probe] : [...checks];
}

/** Derives the readiness of a server from its response to a readiness check. */
export function deriveReadiness(check: Check, response: ProbeResponse, model: GgufModel, backend: string): Health {
  const nonsense =
    response.status === 200 ? findNonsense(check, parseJson(response.body), model.embeddingLengthOut ?? model.embeddingLength) : undefined;
  if (nonsense === undefined) return deriveHealth(check, response);
  return { kind: 'nonsense', message: `The model answers nonsense: with backend "${backend}", ${nonsense}` };
}

const WORST_FIRST = ['nonsense', 'failing', 'silent', 'loading'] as const;

/** Everything that a slot serves has to work. */
export function worstOf(answers: readonly Health[]): Health {
  return (
    WORST_FIRST.map((kind) => answers.find((answer) => answer.kind === kind)).find((answer) => answer !== undefined) ?? { kind: 'passing' }
  );
}

export function deriveHealth(probe: Check, response: ProbeResponse): Health {
  const { status, error = 'no connection' } = response;
  if (status === 0) return { kind: 'silent', message: `The server does not respond: ${error}` };
  const body = parseJson(response.body);
  if (status === 503) return { kind: 'loading', message: `The server is still loading the model: ${messageIn(body, response)}` };
  if (status !== 200) return { kind: 'failing', message: `A health probe failed with HTTP status ${status}: ${messageIn(body, response)}` };
  const { schema, what } = EXPECTED[probe];
  if (!schema.safeParse(body).success) return { kind: 'failing', message: `The response to a health probe does not contain ${what}` };
  if (probe !== 'embedding' || !ZeroEmbedding.safeParse(body).success) return { kind: 'passing' };
  return { kind: 'failing', message: 'The response to a health probe is a vector of zeros: the model file may be damaged' };
}

function messageIn(body: unknown, response: ProbeResponse): string {
  const message = ErrorBody.safeParse(body).data?.error.message ?? response.body;
  return JSON.stringify(message.slice(0, MAX_QUOTED_CHARACTERS));
}
