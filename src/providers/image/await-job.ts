/** Waits for a job of ComfyUI: its WebSocket reports events, history the outcome. Either may be late. */
import { askBriefly, nextMessage, reportProgress, wait, begin, write } from '../translation-steps.ts';
import type { RequestProgress, Steps, TranslationEnd } from '../translation.ts';
import {
  isPartialDue,
  isQueued,
  parseEvent,
  parseHistory,
  type JobOutcome,
  type Preview,
  type SavedImage,
} from './decide/comfy-answers.ts';
import { MOST_IMAGE_BYTES, NOT_AN_IMAGE, viewOf, type AnswerFacts } from './answer-images.ts';
import { imageFailed } from './decide/describe-failure.ts';
import { beginsAs, endsAs, textAround } from './decide/image-bytes.ts';
import type { ImageParameters } from './decide/image-parameters.ts';

/** `/queue` contains every waiting workflow. */
const MOST_QUEUE_BYTES = 64 * 1024 * 1024;
/** Polling without a WebSocket, by age of the request: an image of two seconds is noticed within 50 ms. */
const PACE = [
  { untilMs: 4000, everyMs: 40 },
  { untilMs: 30_000, everyMs: 200 },
] as const;
const SLOW_PACE_MS = 500;
/** A restarted server has forgotten the job. */
const CHECK_EVERY_MS = 5000;
/** A job leaves the queue a moment before it enters history. */
const MOST_MISSES = 2;

export type OnPreview = (preview: Preview, progress: RequestProgress) => Steps<void>;

interface Watch {
  readonly id: string;
  readonly onPreview: OnPreview | undefined;
  progress: RequestProgress | undefined;
  isListening: boolean;
  isEnding: boolean;
}

/** Call after `listen`. `saveNode`: the node whose images are wanted. */
export function* awaitJob(id: string, saveNode: string, onPreview?: OnPreview): Steps<JobOutcome> {
  const watch: Watch = { id, onPreview, progress: undefined, isListening: true, isEnding: false };
  let waitedMs = 0;
  let checkedMs = 0;
  let misses = 0;
  for (;;) {
    waitedMs += yield* rest(watch, pauseMs(watch, waitedMs, misses));
    const outcome = parseHistory(yield* askBriefly({ method: 'GET', path: `/history/${id}` }, MOST_QUEUE_BYTES), id, saveNode);
    if (outcome.kind !== 'unknown' || misses > MOST_MISSES) return outcome;
    if (waitedMs - checkedMs < CHECK_EVERY_MS && misses === 0) continue;
    checkedMs = waitedMs;
    const queued = isQueued(yield* askBriefly({ method: 'GET', path: '/queue' }, MOST_QUEUE_BYTES), id);
    misses = queued === true ? 0 : misses + 1;
  }
}

function pauseMs({ isListening, isEnding }: Watch, waitedMs: number, misses: number): number {
  if (isListening && !isEnding && misses === 0) return CHECK_EVERY_MS;
  return PACE.find(({ untilMs }) => waitedMs < untilMs)?.everyMs ?? SLOW_PACE_MS;
}

function* rest(watch: Watch, ms: number): Steps<number> {
  if (!watch.isListening) {
    yield* wait(ms);
    return ms;
  }
  let waited = 0;
  for (let until = ms; waited < until;) {
    const { message, waitedMs } = yield* nextMessage(until - waited);
    waited += waitedMs;
    if (message.kind === 'closed') watch.isListening = false;
    if (message.kind === 'closed' || message.kind === 'none') return waited;
    const event = parseEvent(message, watch.id);
    watch.isEnding ||= event.kind === 'ending' || event.kind === 'ended';
    if (event.kind === 'ended') return waited;
    if (event.kind === 'ending') until = Math.min(until, waited + PACE[0].everyMs);
    if (event.kind === 'progress') {
      watch.progress = event.progress;
      yield* reportProgress(event.progress);
    }
    if (event.kind === 'preview' && watch.onPreview !== undefined && watch.progress !== undefined)
      yield* watch.onPreview(event.preview, watch.progress);
  }
  return waited;
}

const EVENTS = { status: 200, contentType: 'text/event-stream', headers: { 'cache-control': 'no-cache' } } as const;
/** Clients read it; these models have no tokens. */
const NO_USAGE = { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details: { image_tokens: 0, text_tokens: 0 } };

interface StreamFacts extends AnswerFacts {
  readonly size: string;
  readonly events: 'image_generation' | 'image_edit';
}

/** Responds with events, like OpenAI's API for `"stream": true`: previews, and then each image. */
export function createImageStream(parameters: ImageParameters, { created, hal0, size, events }: StreamFacts) {
  const { partialImages, outputFormat } = parameters;
  let hasBegun = false;
  let sent = 0;

  function* send(event: string, image: Uint8Array, fields: object): Steps<void> {
    if (!hasBegun) yield* begin(EVENTS);
    hasBegun = true;
    const type = `${events}.${event}`;
    const common = { created_at: created, size, quality: 'auto', background: 'opaque' };
    // The fields after the image, without the opening brace.
    const rest = JSON.stringify({ ...fields, ...common }).slice(1);
    const before = `event: ${type}\ndata: {"type":"${type}","b64_json":"`;
    for (const piece of textAround(before, image, `",${rest}\n\n`)) yield* write(piece);
  }

  return {
    *onPreview({ format, bytes }: Preview, progress: RequestProgress): Steps<void> {
      if (!isPartialDue(progress, partialImages, sent)) return;
      yield* send('partial_image', bytes, { partial_image_index: sent, output_format: format });
      sent += 1;
    },

    /** One image is in memory at a time. Errors are possible until the first event. */
    *complete(images: readonly SavedImage[]): Steps<TranslationEnd> {
      for (const image of images) {
        const { status, body } = yield* askBriefly(viewOf(image, parameters), MOST_IMAGE_BYTES);
        if (status !== 200 || !beginsAs(outputFormat, body) || !endsAs(outputFormat, body)) return imageFailed(NOT_AN_IMAGE);
        yield* send('completed', body, { output_format: outputFormat, usage: NO_USAGE, _hal0: hal0 });
      }
      return { kind: 'written' };
    },
  };
}
