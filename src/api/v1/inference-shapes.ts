/** Schemas and errors of the inference paths in the OpenAPI document. */
import { z } from 'zod';
import type { InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { PassedAnswer } from '../server/answer.ts';
import { AnyObject, ANSWERS, InferenceRequest, REQUESTS } from './inference-schemas.ts';

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
  'slot.queue_full',
  'slot.loading',
  'slot.disabled',
  'slot.stalled',
  'slot.insufficient_memory',
  'upstream.failed',
  'upstream.timeout',
];

export function inferenceErrors({ capability }: InferencePath): readonly ErrorCode[] {
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
  '/v2/rerank': { request: REQUESTS.RerankRequest, answer: ANSWERS.SortedRanking },
};

export function inferenceInput(path: InferencePath): z.ZodObject {
  return z.object({ body: shapeOf(path).request });
}

export function inferenceAnswers(path: InferencePath): { readonly 200: PassedAnswer } {
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
