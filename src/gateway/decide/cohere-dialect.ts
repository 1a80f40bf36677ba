/** Cohere's `/v2/rerank`: its requests are those of the other rerank paths, its answers and errors are not. Pure. */
import { isTable } from '../../schema/words/key-case.ts';
import type { Dialect } from '../route/decide/dialects.ts';

export const COHERE: Dialect = {
  errorBody: (error, _status, requestId) => ({ id: requestId, message: error.message, error }),
  translateAnswer(answer, requestId) {
    const results = isTable(answer) ? answer['results'] : undefined;
    if (!Array.isArray(results)) return undefined;
    const scores = results.map(scoreOf);
    if (!scores.every((score) => score !== undefined)) return undefined;
    const meta = { api_version: { version: '2' }, ...tokensOf(answer) };
    return { id: requestId, results: scores.toSorted((one, other) => other.relevance_score - one.relevance_score), meta };
  },
};

interface Score {
  readonly index: number;
  readonly relevance_score: number;
}

function scoreOf(result: unknown): Score | undefined {
  if (!isTable(result)) return undefined;
  const { index, relevance_score: score } = result;
  return typeof index === 'number' && typeof score === 'number' ? { index, relevance_score: score } : undefined;
}

function tokensOf(answer: unknown): object {
  const usage = isTable(answer) ? answer['usage'] : undefined;
  const input = isTable(usage) ? usage['prompt_tokens'] : undefined;
  return typeof input === 'number' ? { tokens: { input_tokens: input } } : {};
}
