/**
 * Finds out whether what a model computed for its first request is nonsense. To refuse a sound model would be worse than to miss a broken one, so only answers that no sound
 * model can give count:
 *
 *     completion   the probability of the token is not a number, or the ten most probable tokens are all equally probable
 *     embedding    a value is not a number, all are 0, or there are more or fewer than the file of the model says
 *     rerank       a score is not a number, or the query itself and another text get exactly the same score
 *
 * So these are fine: no text at all, the end of the text as the first token, half of a character, any language, a vector of any length other than 0, a document ranked above the
 * query itself, and an answer without probabilities, as servers other than llama-server give it. llama-server writes NaN and infinity as `null` (seen with 0.7.0, upstream b11669).
 * Pure.
 */
import { z } from 'zod';
import { decodeVector } from './decode-vector.ts';

export type Check = 'completion' | 'embedding' | 'rerank';

/** So many of the most probable tokens are asked for. */
export const TOP_TOKENS = 10;

/** How much of a token a message quotes. */
const QUOTED_CHARACTERS = 40;

const probability = z.object({ logprob: z.number().nullable() });
const Completion = z.object({
  choices: z.tuple(
    [
      z.object({
        text: z.string(),
        logprobs: z.object({ content: z.tuple([probability.extend({ top_logprobs: z.array(probability) })], z.unknown()) }),
      }),
    ],
    z.unknown(),
  ),
});
const Embedding = z.object({ data: z.tuple([z.object({ embedding: z.unknown() })], z.unknown()) });
const Rerank = z.object({ results: z.array(z.object({ relevance_score: z.number().nullable() })) });

/** Returns what is wrong as the end of a sentence about the model; undefined where nothing is. `dimension`: the length of its vectors, where it is known. */
export function findNonsense(check: Check, body: unknown, dimension: number | undefined): string | undefined {
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

function quote(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_CHARACTERS));
}
