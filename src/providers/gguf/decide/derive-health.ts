/** Derives health from responses to probes: only a response of a working model passes. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { Health, ProbeResponse } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { judgeAlive, PASSING } from '../../decide/judge-status.ts';
import type { GgufModel } from './gguf-model.ts';

export type Check = 'completion' | 'embedding' | 'rerank';

const TOP_TOKENS = 10;

const QUOTED_CHARACTERS = 40;

const probability = z.object({ logprob: z.number().nullable() });
const first = <Entry extends z.ZodType>(entry: Entry) => z.tuple([entry], z.unknown());
const logprobs = z.object({ content: first(probability.extend({ top_logprobs: z.array(probability) })) });
const Completion = z.object({ choices: first(z.object({ text: z.string(), logprobs })) });
const Embedding = z.object({ data: first(z.object({ embedding: z.unknown() })) });
const Rerank = z.object({ results: z.array(z.object({ relevance_score: z.number().nullable() })) });

/**
 * Finds nonsense in the first result of a model. Refusing a sound model is worse than missing a broken one, so only
 * results that no sound model can give count:
 *
 *     completion   the probability of the token is not a number, or the ten most probable tokens are equally probable
 *     embedding    a value is not a number, all are 0, or the length differs from the file of the model
 *     rerank       a score is not a number, or the query itself and another text get exactly the same score
 *
 * Fine are: no text, the end of the text as first token, half of a character, any language, a document ranked above
 * the query itself, and results without probabilities. llama-server writes NaN and infinity as `null`.
 */
function findNonsense(check: Check, body: unknown, dimension: number | undefined): string | undefined {
  if (check === 'completion') return inCompletion(Completion.safeParse(body).data);
  if (check === 'rerank') return inRerank(Rerank.safeParse(body).data);
  return inVector(decodeVector(Embedding.safeParse(body).data?.data[0].embedding), dimension);
}

function inCompletion(answer: z.infer<typeof Completion> | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const [{ text, logprobs }] = answer.choices;
  const [{ logprob, top_logprobs: top }] = logprobs.content;
  if (logprob === null) return `it gave the token ${quote(text)} a probability that is not a number`;
  const all = top.length >= TOP_TOKENS && top.every((other) => other.logprob === logprob);
  return all ? 'all of its tokens are equally probable, as if its weights were zeros' : undefined;
}

function inVector(vector: readonly number[] | undefined, dimension: number | undefined): string | undefined {
  if (vector === undefined || vector.length === 0) return undefined;
  const broken = vector.filter((value) => !Number.isFinite(value)).length;
  if (broken > 0) return `${broken} of the ${vector.length} values of its embedding are not numbers`;
  if (vector.every((value) => value === 0)) return `all ${vector.length} values of its embedding are 0`;
  if (dimension === undefined || vector.length === dimension) return undefined;
  return `its embedding has ${vector.length} values, and its file says ${dimension}`;
}

function inRerank(answer: z.infer<typeof Rerank> | undefined): string | undefined {
  const scores = answer?.results.map((result) => result.relevance_score) ?? [];
  if (scores.includes(null)) return 'it scored a document with something that is not a number';
  const [first] = scores;
  return scores.length > 1 && scores.every((score) => score === first)
    ? `it gave different documents exactly the same score, ${first}`
    : undefined;
}

const quote = (text: string): string => JSON.stringify(text.slice(0, QUOTED_CHARACTERS));

export type ProbeRequest = { readonly path: string; readonly body: string };

/** Base64 takes a quarter of the bytes of numbers. */
export const PROBES: Readonly<Record<Check, ProbeRequest>> = {
  completion: { path: '/v1/completions', body: JSON.stringify({ prompt: 'Hi', max_tokens: 1, temperature: 0, cache_prompt: false }) },
  embedding: { path: '/v1/embeddings', body: JSON.stringify({ input: 'Hi', encoding_format: 'base64' }) },
  rerank: { path: '/v1/rerank', body: JSON.stringify({ query: 'Hi', documents: ['Hello'] }) },
};

export const READINESS_CHECKS: Readonly<Record<Check, ProbeRequest>> = {
  completion: {
    path: '/v1/completions',
    body: JSON.stringify({ prompt: 'Hi', max_tokens: 1, temperature: 0, cache_prompt: false, logprobs: TOP_TOKENS }),
  },
  embedding: PROBES.embedding,
  rerank: { path: '/v1/rerank', body: JSON.stringify({ query: 'Hi', documents: ['Hi', 'The dog runs home'] }) },
};

const FLOAT_BYTES = 4;
const Vector = z.array(z.number().nullable());
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
const ZeroEmbedding = z.object({ data: first(z.object({ embedding: z.unknown().refine(isZero) })) });

export function checksFor(capabilities: readonly Capability[], probe: Check): readonly Check[] {
  const checks = new Set<Check>();
  for (const capability of capabilities) {
    if (capability === 'chat' || capability === 'completion') checks.add('completion');
    if (capability === 'embedding' || capability === 'rerank') checks.add(capability);
  }
  return checks.size === 0 ? [probe] : [...checks];
}

export function deriveReadiness(check: Check, response: ProbeResponse, model: GgufModel, backend: string): Health {
  const nonsense =
    response.status === 200 ? findNonsense(check, parseJson(response.body), model.embeddingLengthOut ?? model.embeddingLength) : undefined;
  if (nonsense === undefined) return deriveHealth(check, response);
  return { kind: 'nonsense', message: `The model answers nonsense: with backend "${backend}", ${nonsense}` };
}

const WORST_FIRST = ['nonsense', 'failing', 'silent', 'loading'] as const;

export const worstOf = (answers: readonly Health[]): Health =>
  WORST_FIRST.map((kind) => answers.find((answer) => answer.kind === kind)).find((answer) => answer !== undefined) ?? PASSING;

export function deriveHealth(probe: Check, response: ProbeResponse): Health {
  const failed = judgeAlive(response);
  if (failed !== undefined) return failed;
  const body = parseJson(response.body);
  const { schema, what } = EXPECTED[probe];
  if (!schema.safeParse(body).success) return { kind: 'failing', message: `The response to a health probe does not contain ${what}` };
  if (probe !== 'embedding' || !ZeroEmbedding.safeParse(body).success) return PASSING;
  return { kind: 'failing', message: 'The response to a health probe is a vector of zeros: the model file may be damaged' };
}

/** `null`, a number that JSON cannot express, becomes NaN. */
function decodeVector(embedding: unknown): readonly number[] | undefined {
  if (typeof embedding !== 'string') return Vector.safeParse(embedding).data?.map((value) => value ?? Number.NaN);
  const bytes = Buffer.from(embedding, 'base64');
  if (bytes.length % FLOAT_BYTES !== 0) return undefined;
  return Array.from({ length: bytes.length / FLOAT_BYTES }, (_, index) => bytes.readFloatLE(index * FLOAT_BYTES));
}
