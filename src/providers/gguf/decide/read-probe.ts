/** Reads the answer of a health probe: only an answer that a model must have made passes. Pure; the answer is not trusted. */
import type { Health } from '../../provider.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

export type Probe = 'completion' | 'embedding' | 'rerank';

export interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
  readonly error?: string;
}

/** As much of a foreign message as is worth repeating. */
const SHOWN_CHARACTERS = 200;

export function readProbe(probe: Probe, answer: ProbeAnswer): Health {
  if (answer.status === 0) return { kind: 'loading', message: `The server does not answer yet: ${answer.error ?? 'no connection'}` };
  const body = parseJson(answer.body);
  if (answer.status === 503)
    return { kind: 'loading', message: `The server answers, the model is still loading: ${messageOf(body, answer)}` };
  if (answer.status !== 200)
    return { kind: 'failing', message: `The model answers a probe with status ${answer.status}: ${messageOf(body, answer)}` };
  const wrong = { completion: wrongCompletion, embedding: wrongEmbedding, rerank: wrongRerank }[probe](body);
  return wrong === undefined ? { kind: 'passing' } : { kind: 'failing', message: wrong };
}

function wrongCompletion(body: unknown): string | undefined {
  const text = at(body, 'choices', 0, 'text');
  return typeof text === 'string' ? undefined : 'The model answers a probe without text in "choices"';
}

function wrongEmbedding(body: unknown): string | undefined {
  const vector = at(body, 'data', 0, 'embedding');
  if (!Array.isArray(vector) || vector.length === 0) return 'The model answers a probe without a vector in "data"';
  if (!vector.every((value) => Number.isFinite(value)))
    return 'The model answers a probe with a vector that has values which are no numbers';
  return vector.some((value) => value !== 0) ? undefined : 'The model answers a probe with a vector of zeros: its file may be damaged';
}

function wrongRerank(body: unknown): string | undefined {
  const score = at(body, 'results', 0, 'relevance_score');
  return Number.isFinite(score) ? undefined : 'The model answers a probe without a score in "results"';
}

function messageOf(body: unknown, answer: ProbeAnswer): string {
  const message = at(body, 'error', 'message');
  return JSON.stringify((typeof message === 'string' ? message : answer.body).slice(0, SHOWN_CHARACTERS));
}

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null ? Object.entries(inner).find(([name]) => name === String(key))?.[1] : undefined,
    value,
  );
}
