/** The inference paths: their requests go to a slot with the body unchanged. */
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { ANTHROPIC, COHERE, OPENAI, type Dialect } from './dialects.ts';

export interface InferencePath {
  readonly path: string;
  /** The path that is passed to the provider instead, if this one is an alias. */
  readonly canonical?: string;
  readonly capability: Capability;
  /** Default: OpenAI's. */
  readonly dialect?: Dialect;
  readonly body?: 'multipart';
  /** Its bodies are limited by `SVC_AUDIO_LIMIT`. Default: by `SVC_BODY_LIMIT`. */
  readonly audio?: true;
  readonly summary: string;
}

const RERANK = { canonical: '/v1/rerankings', capability: 'rerank', summary: 'Orders documents by relevance to a query' } as const;

const RECORDING = { body: 'multipart', audio: true } as const;
const TRANSLATION_SUMMARY = 'Writes down in English what is said in a recording';

export const INFERENCE_PATHS: readonly InferencePath[] = [
  { path: '/v1/chat/completions', capability: 'chat', summary: 'Answers a conversation' },
  { path: '/v1/completions', capability: 'completion', summary: 'Continues a text' },
  { path: '/v1/embeddings', capability: 'embedding', summary: 'Turns texts into vectors' },
  { path: '/v1/responses', capability: 'chat', summary: 'Answers in the form of the Responses API' },
  { path: '/v1/messages', capability: 'chat', dialect: ANTHROPIC, summary: 'Answers in the form of the Messages API' },
  { path: '/v1/messages/count_tokens', capability: 'chat', dialect: ANTHROPIC, summary: 'Counts the tokens of a Messages request' },
  { path: '/v1/rerankings', ...RERANK },
  { path: '/v1/rerank', ...RERANK },
  { path: '/v1/reranking', ...RERANK },
  { path: '/rerank', ...RERANK },
  { path: '/v2/rerank', ...RERANK, dialect: COHERE },
  { path: '/v1/audio/transcriptions', capability: 'transcription', ...RECORDING, summary: 'Writes down what is said in a recording' },
  { path: '/v1/audio/translations', capability: 'translation', ...RECORDING, summary: TRANSLATION_SUMMARY },
  { path: '/v1/audio/speech', capability: 'speech', audio: true, summary: 'Reads a text aloud' },
  { path: '/v1/images/generations', capability: 'image', summary: 'Draws images from a description' },
  { path: '/v1/images/edits', capability: 'image', body: 'multipart', summary: 'Changes images as described' },
];

const DIALECTS: ReadonlyMap<string, Dialect> = new Map(INFERENCE_PATHS.map(({ path, dialect = OPENAI }) => [path, dialect]));

/** The dialect of a route, also of one that is no inference path. */
export function dialectOf(path: string): Dialect {
  return DIALECTS.get(path) ?? OPENAI;
}

/** The slot used if a request names no model. */
export const DEFAULT_SLOT_OF_CAPABILITY: Readonly<Record<Capability, string>> = {
  chat: 'primary',
  completion: 'primary',
  rerank: 'primary',
  embedding: 'embed',
  transcription: 'stt',
  translation: 'stt',
  speech: 'tts',
  image: 'img',
};
