/** The inference paths: their requests go to a slot with the body unchanged. */
import type { Capability } from '../../schema/provider-kinds.ts';

export interface InferencePath {
  /** As clients send it. */
  readonly path: string;
  /** The same path for all aliases, as passed to the provider. */
  readonly canonical: string;
  readonly capability: Capability;
  readonly summary: string;
}

const RERANK = { canonical: '/v1/rerankings', capability: 'rerank', summary: 'Orders documents by relevance to a query' } as const;

export const INFERENCE_PATHS: readonly InferencePath[] = [
  entry('/v1/chat/completions', 'chat', 'Answers a conversation'),
  entry('/v1/completions', 'completion', 'Continues a text'),
  entry('/v1/embeddings', 'embedding', 'Turns texts into vectors'),
  entry('/v1/responses', 'chat', 'Answers in the form of the Responses API'),
  entry('/v1/messages', 'chat', 'Answers in the form of the Messages API'),
  entry('/v1/messages/count_tokens', 'chat', 'Counts the tokens of a Messages request'),
  { path: '/v1/rerankings', ...RERANK },
  { path: '/v1/rerank', ...RERANK },
  { path: '/v1/reranking', ...RERANK },
  { path: '/rerank', ...RERANK },
];

/** The slot used if a request names no model. */
export const DEFAULT_SLOT_OF_CAPABILITY: Readonly<Record<Capability, string>> = {
  chat: 'primary',
  completion: 'primary',
  rerank: 'primary',
  embedding: 'embed',
  transcription: 'stt',
  speech: 'tts',
  image: 'img',
};

function entry(path: string, capability: Capability, summary: string): InferencePath {
  return { path, canonical: path, capability, summary };
}
