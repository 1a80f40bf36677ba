/** Where a request goes on llama-server. Pure. */
import type { InferPlan, InferRequest } from '../../provider.ts';
import type { Capability } from '../../../schema/provider-kinds.ts';

/** Canonical path → llama-server's. It does not know the plural of reranking. */
const UPSTREAM_PATH: Readonly<Record<string, string>> = {
  '/v1/chat/completions': '/v1/chat/completions',
  '/v1/completions': '/v1/completions',
  '/v1/embeddings': '/v1/embeddings',
  '/v1/rerankings': '/v1/rerank',
  '/v1/responses': '/v1/responses',
  '/v1/messages': '/v1/messages',
  '/v1/messages/count_tokens': '/v1/messages/count_tokens',
};

const LACKS: Readonly<Partial<Record<Capability, string>>> = {
  chat: 'This model cannot chat: it makes embeddings or scores; send the request to a slot with a chat model',
  completion: 'This model cannot complete text: it makes embeddings or scores; send the request to a slot with a text model',
  embedding: 'This slot makes no embeddings: send the request to the slot "embed", or give this slot an embedding model',
  rerank: 'This model cannot rerank: its file has no classifier head; give the slot a reranker model',
};

export function inferPath(request: InferRequest, capabilities: readonly Capability[]): InferPlan {
  if (!capabilities.includes(request.capability)) {
    return { kind: 'refuse', message: LACKS[request.capability] ?? `A GGUF slot does not serve "${request.capability}"` };
  }
  const path = Object.hasOwn(UPSTREAM_PATH, request.path) ? UPSTREAM_PATH[request.path] : undefined;
  return path === undefined
    ? { kind: 'refuse', message: `A GGUF slot does not serve the path "${request.path}"` }
    : { kind: 'forward', path };
}
