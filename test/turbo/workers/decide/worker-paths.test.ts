import { expect, test } from '@jest/globals';
import { INFERENCE_PATHS } from '../../../../src/gateway/route/decide/inference-paths.ts';
import { isForWorkers } from '../../../../src/turbo/workers/worker.ts';

test('workers serve the paths of texts, and none with a form or with files', () => {
  const served = INFERENCE_PATHS.filter(isForWorkers);
  expect(served.map(({ path }) => path)).toEqual([
    '/v1/chat/completions',
    '/v1/completions',
    '/v1/embeddings',
    '/v1/responses',
    '/v1/messages',
    '/v1/messages/count_tokens',
    '/v1/rerankings',
    '/v1/rerank',
    '/v1/reranking',
    '/rerank',
    '/v2/rerank',
  ]);
  expect(served.some(({ body, audio }) => body !== undefined || audio !== undefined)).toBe(false);
});
