/** The inference paths: their requests go to a slot with the body unchanged. */
import type { Capability } from '../../schema/provider-kinds.ts';

export interface InferencePath {
  /** As clients send it. */
  readonly path: string;
  /** The path that is passed to the provider instead, if this one is an alias. */
  readonly canonical?: string;
  readonly capability: Capability;
  readonly summary: string;
}

const RERANK = { canonical: '/v1/rerankings', capability: 'rerank', summary: 'Orders documents by relevance to a query' } as const;

export const INFERENCE_PATHS: readonly InferencePath[] = [
  { path: '/v1/chat/completions', capability: 'chat', summary: 'Answers a conversation' },
  { path: '/v1/completions', capability: 'completion', summary: 'Continues a text' },
  { path: '/v1/embeddings', capability: 'embedding', summary: 'Turns texts into vectors' },
  { path: '/v1/responses', capability: 'chat', summary: 'Answers in the form of the Responses API' },
  { path: '/v1/messages', capability: 'chat', summary: 'Answers in the form of the Messages API' },
  { path: '/v1/messages/count_tokens', capability: 'chat', summary: 'Counts the tokens of a Messages request' },
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
