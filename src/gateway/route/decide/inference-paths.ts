/** The inference paths: their requests go to a slot with the body unchanged. */
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { nearestWord } from '../../../schema/words/nearest-word.ts';
import { ANTHROPIC, COHERE, OLLAMA, OPENAI, type Dialect } from './dialects.ts';

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
  /** Answers are streams of events where the body has `"stream": true`. */
  readonly streams?: true;
  /** Only servers have it whose provider names it in `nativePaths`, whatever else they serve. */
  readonly native?: true;
  readonly summary: string;
}

const RERANK = { canonical: '/v1/rerankings', capability: 'rerank', summary: 'Orders documents by relevance to a query' } as const;

const RECORDING = { body: 'multipart', audio: true } as const;
const TRANSLATION_SUMMARY = 'Writes down in English what is said in a recording';

export const INFERENCE_PATHS: readonly InferencePath[] = [
  { path: '/v1/chat/completions', capability: 'chat', streams: true, summary: 'Answers a conversation' },
  { path: '/v1/completions', capability: 'completion', streams: true, summary: 'Continues a text' },
  { path: '/v1/embeddings', capability: 'embedding', summary: 'Turns texts into vectors' },
  { path: '/v1/responses', capability: 'chat', streams: true, summary: 'Answers in the form of the Responses API' },
  { path: '/v1/messages', capability: 'chat', dialect: ANTHROPIC, streams: true, summary: 'Answers in the form of the Messages API' },
  { path: '/v1/messages/count_tokens', capability: 'chat', dialect: ANTHROPIC, summary: 'Counts the tokens of a Messages request' },
  { path: '/v1/rerankings', ...RERANK },
  { path: '/v1/rerank', ...RERANK },
  { path: '/v1/reranking', ...RERANK },
  { path: '/rerank', ...RERANK },
  { path: '/v2/rerank', ...RERANK, dialect: COHERE },
  { path: '/v1/audio/transcriptions', capability: 'transcription', ...RECORDING, summary: 'Writes down what is said in a recording' },
  { path: '/v1/audio/translations', capability: 'translation', ...RECORDING, summary: TRANSLATION_SUMMARY },
  { path: '/v1/audio/speech', capability: 'speech', audio: true, summary: 'Reads a text aloud' },
  { path: '/v1/images/generations', capability: 'image', streams: true, summary: 'Draws images from a description' },
  { path: '/v1/images/edits', capability: 'image', body: 'multipart', summary: 'Changes images as described' },
  { path: '/v1/images/variations', capability: 'image', body: 'multipart', summary: 'Draws images like another one' },
];

const NATIVE = { capability: 'completion', native: true } as const;

/** Paths of model servers that are no part of OpenAI's API. */
export const NATIVE_PATHS: readonly InferencePath[] = [
  { path: '/v1/tokenize', ...NATIVE, summary: 'Turns a text into tokens' },
  { path: '/v1/detokenize', ...NATIVE, summary: 'Turns tokens into a text' },
  { path: '/infill', ...NATIVE, summary: 'Writes what is missing between two texts' },
  { path: '/v1/score', ...NATIVE, summary: 'Compares texts' },
  { path: '/v1/classify', ...NATIVE, summary: 'Sorts texts into classes' },
];
export const UPSTREAM_PATH: InferencePath = {
  path: '/upstream/:slot/*',
  ...NATIVE,
  summary: 'Sends any request to the model server of a slot',
};
export const PROPS_PATH: InferencePath = { path: '/props', ...NATIVE, summary: 'Describes the model server of a slot' };

/** Reads `/upstream/<slot>/<path and query>`. Undefined if it leads elsewhere, or has more than 4 KiB. */
export function parseUpstreamUrl(url: string): { readonly slot: string; readonly target: string } | undefined {
  const [, slot, target = ''] = /^\/upstream\/([^/?#]+)(\/[!"$-~]{0,4095})$/.exec(url) ?? [];
  const [path = ''] = target.split('?', 1);
  const plain = path.replace(/%(?:2e|2f|5c)/gi, (code) => decodeURIComponent(code));
  return slot === undefined || /\\|%(?![0-9a-f]{2})|^\/\/|\/\.{1,2}(?:\/|$)/i.test(plain) ? undefined : { slot, target };
}

const DIALECTS: ReadonlyMap<string, Dialect> = new Map(INFERENCE_PATHS.map(({ path, dialect = OPENAI }) => [path, dialect]));

/** The dialect of a path, also of one that is no inference path. */
export const dialectOf = (path: string): Dialect => DIALECTS.get(path) ?? (OLLAMA_PATH.test(path) ? OLLAMA : OPENAI);

const OLLAMA_PATH = /^(?:\/ollama)?\/api\/(?:blobs\/.*|chat|copy|create|delete|embed|embeddings|generate|ps|pull|push|show|tags|version)$/;

/** Paths of Ollama, and of probes, with the path here that does the same. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['/api/chat', '/v1/chat/completions'],
  ['/api/generate', '/v1/completions'],
  ['/api/embed', '/v1/embeddings'],
  ['/api/embeddings', '/v1/embeddings'],
  ...['/api/tags', '/api/show'].map((path) => [path, '/v1/models'] as const),
  ...['/api/ps', '/api/version'].map((path) => [path, '/api/status'] as const),
  ...['/health', '/healthz', '/livez', '/readyz', '/ping', '/v1/health'].map((path) => [path, '/api/health/system'] as const),
]);

/** The path that a client meant, which may lack `/v1` or have more in front of it. `known`: paths of routes. */
export function nearestPath(asked: string, known: readonly string[]): string | undefined {
  const path = asked.replace(/\/+$/, '');
  const ends = known.filter((each) => each.startsWith('/v1/') && path.endsWith(each.slice('/v1'.length)));
  if (known.includes(`/ollama${path}`)) return `/ollama${path}`;
  return (
    ELSEWHERE.get(path.replace(/^\/ollama(?=\/)/, '')) ??
    ends.toSorted((one, other) => other.length - one.length)[0] ??
    nearestWord(path, known)
  );
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
