/**
 * Inference requests and answers in the OpenAPI document. The gateway passes both on unchanged and checks neither, so
 * the schemas name only fields that all model servers know, and allow others.
 */
import { z } from 'zod';
import type { InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import { CAPABILITIES, CHAT_ABILITIES } from '../../schema/slot/provider-kinds.ts';
import { SLOT_STATES } from '../../schema/status/slot-status.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import { SlotName } from '../../schema/words/names.ts';
import type { PassedAnswer } from '../server/answer.ts';

export const ModelField = z
  .string()
  .optional()
  .describe('A model id, an alias, the name of a slot or `<slot>:<preset>`; default: the default slot of the path');
const Stream = z.boolean().optional().describe('Answer with server-sent events');
const Tokens = z.int().min(0);
const AnyObject = z.looseObject({});

const InferenceRequest = z.looseObject({ model: ModelField });
const StreamRequest = InferenceRequest.extend({ stream: Stream });
const Usage = z.looseObject({ prompt_tokens: Tokens, total_tokens: Tokens, completion_tokens: Tokens.optional() });
const MessageUsage = z.looseObject({ input_tokens: Tokens, output_tokens: Tokens });

const ChatCompletionRequest = StreamRequest.extend({ messages: z.array(z.looseObject({ role: z.string() })) });
const ChatCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.looseObject({ index: z.int(), message: z.looseObject({ role: z.string() }), finish_reason: z.string().nullable() })),
  usage: Usage.optional(),
});

const CompletionRequest = StreamRequest.extend({
  prompt: z.union([z.string(), z.array(z.unknown())]).describe('A text, or a list of texts or tokens'),
});
const Completion = z.looseObject({
  object: z.literal('text_completion'),
  choices: z.array(z.looseObject({ index: z.int(), text: z.string(), finish_reason: z.string().nullable() })),
  usage: Usage.optional(),
});

const EmbeddingRequest = InferenceRequest.extend({
  input: z.union([z.string(), z.array(z.unknown())]).describe('A text, or a list of texts or tokens'),
  encoding_format: z.enum(['float', 'base64']).optional(),
});
const Embeddings = z.looseObject({
  object: z.literal('list'),
  data: z.array(z.looseObject({ index: z.int(), embedding: z.union([z.array(z.number()), z.string()]).describe('Numbers, or base64') })),
  usage: Usage.optional(),
});

const ResponseRequest = StreamRequest.extend({ input: z.union([z.string(), z.array(AnyObject)]) });
const ModelResponse = z.looseObject({ id: z.string(), object: z.literal('response'), output: z.array(AnyObject) });

const MessageRequest = StreamRequest.extend({ messages: z.array(z.looseObject({ role: z.string() })), max_tokens: z.int().optional() });
const Message = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  content: z.array(z.looseObject({ type: z.string() })),
  usage: MessageUsage,
});

const TokenCountRequest = InferenceRequest.extend({ messages: z.array(z.looseObject({ role: z.string() })) });
const TokenCount = z.looseObject({ input_tokens: Tokens });

const RerankRequest = InferenceRequest.extend({
  query: z.string(),
  documents: z.array(z.union([z.string(), AnyObject])),
  top_n: z.int().optional(),
});
const Ranking = z.looseObject({ results: z.array(z.looseObject({ index: z.int(), relevance_score: z.number() })) });
const SortedRanking = z.looseObject({
  id: z.string(),
  results: z.array(z.object({ index: z.int(), relevance_score: z.number() })).describe('The most relevant one first'),
});

const AUDIO_FORMAT = z.string().optional().describe('"mp3" (default), "opus", "aac", "flac", "wav" or "pcm"');
const File = z.string().meta({ format: 'binary' });

const TranscriptionRequest = InferenceRequest.extend({
  file: File.describe('The recording'),
  language: z.string().optional().describe('Language of the recording, in ISO 639-1'),
  prompt: z.string().optional(),
  response_format: z.string().optional().describe('"json" (default), "text", "srt", "verbose_json" or "vtt"'),
  temperature: z.number().optional(),
  'timestamp_granularities[]': z.array(z.string()).optional().describe('"segment" or "word", with "verbose_json"'),
  stream: Stream,
});
const AudioTranslationRequest = TranscriptionRequest.omit({ language: true, stream: true, 'timestamp_granularities[]': true });
const Transcription = z.looseObject({ text: z.string() });

const SpeechRequest = InferenceRequest.extend({
  input: z.string().min(1).describe('The text, of at most `SVC_SPEECH_LIMIT` characters'),
  voice: z
    .unknown()
    .optional()
    .describe(
      'A voice that `GET /v1/audio/voices` lists, stored ones included, one of OpenAI, or a mix such as `af_bella(2)+af_sky`; default: that of the model',
    ),
  response_format: AUDIO_FORMAT,
  speed: z.number().optional().describe('0.25 to 4; default: 1'),
  lang_code: z.string().optional().describe('Language of the pronunciation, e.g. `en-gb`; default: that of the voice'),
  ref_audio: z
    .string()
    .optional()
    .describe('A recording of the voice to imitate, 1 to 30 seconds, in Base64; only with models that imitate voices'),
  ref_text: z.string().optional().describe('Transcript of that recording'),
  stream_format: z.string().optional().describe('"audio" (default), or "sse" for events'),
});

const ImageRequest = StreamRequest.extend({ prompt: z.string(), n: z.int().optional(), size: z.string().optional() });
const ImageEditRequest = InferenceRequest.extend({
  prompt: z.string(),
  image: File.optional().describe('The image, or several with the name "image[]"'),
  mask: File.optional(),
});
const ImageVariationRequest = InferenceRequest.extend({ image: File, n: z.int().optional(), size: z.string().optional() });
const Images = z.looseObject({
  created: z.int(),
  data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional() })),
});

const Parameters = z.record(z.string(), z.unknown());
const Preset = z.object({ name: z.string(), set: Parameters, force: Parameters });

export const Model = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int().describe('Unix seconds at which the service started'),
  owned_by: z.string(),
  slot: SlotName.describe('The slot that a request meets'),
  preset: Preset.optional().describe('The preset that the id names: what requests get that do not have it, and what all requests get'),
  state: z.enum(SLOT_STATES).describe('Its state: "ready" if any slot with the model is'),
  slots: z.array(z.object({ name: SlotName, state: z.enum(SLOT_STATES) })).describe('All slots that answer to this id'),
  capabilities: z.array(z.enum([...CAPABILITIES, ...CHAT_ABILITIES])).describe('Kinds of requests, then what chats may use'),
});

export const ModelList = z.object({ object: z.literal('list'), data: z.array(Model) });

/** Key: name of the component in the document. */
export const REQUESTS = {
  InferenceRequest,
  ChatCompletionRequest,
  CompletionRequest,
  EmbeddingRequest,
  ResponseRequest,
  MessageRequest,
  TokenCountRequest,
  RerankRequest,
  TranscriptionRequest,
  AudioTranslationRequest,
  SpeechRequest,
  ImageRequest,
  ImageEditRequest,
  ImageVariationRequest,
};
export const ANSWERS = {
  ChatCompletion,
  Completion,
  Embeddings,
  ModelResponse,
  Message,
  TokenCount,
  Ranking,
  SortedRanking,
  Transcription,
  Images,
  Model,
  ModelList,
};

interface InferenceShape {
  readonly request: z.ZodObject;
  readonly answer: z.ZodType;
  readonly others?: Readonly<Record<string, z.ZodType>>;
  /** Effect of "stream": true; undefined where answers are never streamed. */
  readonly stream?: string;
}

/** Errors that the gateway itself answers on every path. A model server can answer others, with `origin` "upstream". */
const INFERENCE_ERRORS: readonly ErrorCode[] = [
  'model.not_found',
  'slot.not_found',
  'model.unsupported',
  'request.cancelled',
  'slot.queue_full',
  'slot.loading',
  'slot.disabled',
  'slot.stalled',
  'slot.insufficient_memory',
  'upstream.failed',
  'upstream.timeout',
];

export function inferenceErrors({ capability }: Pick<InferencePath, 'capability'>): readonly ErrorCode[] {
  if (capability === 'chat') return [...INFERENCE_ERRORS, 'model.no_vision', 'model.no_audio'];
  if (capability === 'speech') return [...INFERENCE_ERRORS, 'audio.cloning_unsupported'];
  return capability === 'image' ? [...INFERENCE_ERRORS, 'image.size_unsupported', 'image.failed'] : INFERENCE_ERRORS;
}

const DATA_ONLY = 'Events whose data is a chunk as JSON; the last one is "[DONE]"';
const NAMED = 'Named events whose data is JSON';

const WRITTEN = { 'text/plain': z.string().describe('With "response_format": "text"') };

/** Key: the path, or its canonical path. */
const SHAPES: Readonly<Record<string, InferenceShape>> = {
  '/v1/chat/completions': { request: REQUESTS.ChatCompletionRequest, answer: ANSWERS.ChatCompletion, stream: DATA_ONLY },
  '/v1/completions': { request: REQUESTS.CompletionRequest, answer: ANSWERS.Completion, stream: DATA_ONLY },
  '/v1/embeddings': { request: REQUESTS.EmbeddingRequest, answer: ANSWERS.Embeddings },
  '/v1/responses': { request: REQUESTS.ResponseRequest, answer: ANSWERS.ModelResponse, stream: NAMED },
  '/v1/messages': { request: REQUESTS.MessageRequest, answer: ANSWERS.Message, stream: NAMED },
  '/v1/messages/count_tokens': { request: REQUESTS.TokenCountRequest, answer: ANSWERS.TokenCount },
  '/v1/rerankings': { request: REQUESTS.RerankRequest, answer: ANSWERS.Ranking },
  '/v1/audio/transcriptions': {
    request: REQUESTS.TranscriptionRequest,
    answer: ANSWERS.Transcription,
    others: WRITTEN,
    stream: 'Events whose data is JSON: "transcript.text.delta", and "transcript.text.done" at the end',
  },
  '/v1/audio/translations': { request: REQUESTS.AudioTranslationRequest, answer: ANSWERS.Transcription, others: WRITTEN },
  '/v1/audio/speech': {
    request: REQUESTS.SpeechRequest,
    answer: AnyObject,
    others: {
      'audio/mpeg': z.string().meta({ format: 'binary' }),
      'audio/wav': z.string().meta({ format: 'binary' }),
      'text/event-stream': z.string().describe('With "stream_format": "sse". Events with audio in base64'),
    },
  },
  '/v1/images/generations': { request: REQUESTS.ImageRequest, answer: ANSWERS.Images, stream: NAMED },
  '/v1/images/edits': { request: REQUESTS.ImageEditRequest, answer: ANSWERS.Images, stream: NAMED },
  '/v1/images/variations': { request: REQUESTS.ImageVariationRequest, answer: ANSWERS.Images, stream: NAMED },
  '/v2/rerank': { request: REQUESTS.RerankRequest, answer: ANSWERS.SortedRanking },
};

export const documentedRoute = <Raw extends object>(path: InferencePath, route: Raw) => ({
  ...route,
  input: z.object({ body: shapeOf(path).request }),
  answers: inferenceAnswers(path),
  errors: inferenceErrors(path),
});

function inferenceAnswers(path: InferencePath): { readonly 200: PassedAnswer } {
  const { answer, others, stream } = shapeOf(path);
  const events = stream === undefined ? {} : { 'text/event-stream': z.string().describe(`With "stream": true. ${stream}`) };
  return {
    200: {
      kind: 'passed',
      description:
        path.dialect?.translateAnswer === undefined
          ? 'The answer of the model server, unchanged'
          : 'The answer, translated from that of the model server',
      content: { 'application/json': answer, ...others, ...events },
    },
  };
}

function shapeOf({ path, canonical = path }: InferencePath): InferenceShape {
  return SHAPES[path] ?? SHAPES[canonical] ?? { request: InferenceRequest, answer: AnyObject };
}
