/** What models are for, as the catalogue sorts them. Pure. */
import type { ProviderKind } from './slot/provider-kinds.ts';

/** The provider that serves the models of each kind, unless an entry names another one. */
export const PROVIDER_OF_MODEL_KIND = {
  chat: 'gguf',
  coder: 'gguf',
  vision: 'gguf',
  embed: 'gguf',
  rerank: 'gguf',
  transcription: 'stt',
  speech: 'tts',
  image: 'image',
} as const satisfies Record<string, ProviderKind>;

export type ModelKind = keyof typeof PROVIDER_OF_MODEL_KIND;

export const MODEL_KINDS = [
  'chat',
  'coder',
  'vision',
  'embed',
  'rerank',
  'transcription',
  'speech',
  'image',
] as const satisfies readonly ModelKind[];

/** What requests can ask of a model beyond what its kind says: calls of tools, thinking before the answer, images as input. */
export const MODEL_ABILITIES = ['tools', 'thinking', 'vision'] as const;
export type ModelAbility = (typeof MODEL_ABILITIES)[number];
