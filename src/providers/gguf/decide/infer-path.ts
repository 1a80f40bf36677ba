/** Maps a request to the path of llama-server that serves it. Pure. */
import type { InferPlan, InferRequest } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';

/** Canonical paths that llama-server serves under the same path. */
const SAME_PATHS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/messages',
  '/v1/messages/count_tokens',
]);

const UNSUPPORTED: Readonly<Partial<Record<Capability, string>>> = {
  chat: 'Send the request to a slot with a chat model: this model only makes embeddings or scores',
  completion: 'Send the request to a slot with a text model: this model only makes embeddings or scores',
  embedding: 'Send the request to the slot "embed", or set an embedding model in this slot: its model does not make embeddings',
  rerank: 'Set a reranker model in this slot: its model has no classifier head',
};

export function inferPath(request: InferRequest, capabilities: readonly Capability[]): InferPlan {
  const { capability, path } = request;
  if (!capabilities.includes(capability)) {
    return { kind: 'refuse', message: UNSUPPORTED[capability] ?? `A GGUF slot does not support "${capability}"` };
  }
  if (path === '/v1/rerankings') return { kind: 'forward', path: '/v1/rerank' };
  if (SAME_PATHS.has(path)) return { kind: 'forward', path };
  return { kind: 'refuse', message: `A GGUF slot does not support the path "${path}"` };
}
