/** Derives the health of a server from its response to a probe. Only a response that a working model must have made passes. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { Health, ProbeResponse } from '../../provider.ts';

export type Probe = 'completion' | 'embedding' | 'rerank';

/** The length of a quoted server message. */
const MAX_QUOTED_CHARACTERS = 200;

const first = (entry: z.ZodType) => z.tuple([entry], z.unknown());
const EXPECTED: Readonly<Record<Probe, { readonly schema: z.ZodType; readonly what: string }>> = {
  completion: { schema: z.object({ choices: first(z.object({ text: z.string() })) }), what: 'text in "choices"' },
  embedding: {
    schema: z.object({ data: first(z.object({ embedding: z.array(z.number()).min(1) })) }),
    what: 'a vector of numbers in "data"',
  },
  rerank: { schema: z.object({ results: first(z.object({ relevance_score: z.number() })) }), what: 'a score in "results"' },
};
/** A damaged model computes zeros. */
const ZeroEmbedding = z.object({ data: first(z.object({ embedding: z.array(z.literal(0)) })) });
const ErrorBody = z.object({ error: z.object({ message: z.string() }) });

export function deriveHealth(probe: Probe, response: ProbeResponse): Health {
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
