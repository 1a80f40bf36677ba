/** Answers with events, as OpenAI's API does for `"stream": true`: previews while the image is drawn, and then each image. */
import { askBriefly, begin, write } from '../translation-steps.ts';
import type { RequestProgress, Steps, TranslationEnd } from '../translation.ts';
import { MOST_IMAGE_BYTES, NOT_AN_IMAGE, viewOf, type AnswerFacts } from './answer-images.ts';
import type { SavedImage } from './decide/comfy-answers.ts';
import { isPartialDue, type Preview } from './decide/comfy-events.ts';
import { imageFailed } from './decide/describe-failure.ts';
import { beginsAs, endsAs, textAround } from './decide/image-bytes.ts';
import type { ImageParameters } from './decide/image-parameters.ts';

const EVENTS = { status: 200, contentType: 'text/event-stream', headers: { 'cache-control': 'no-cache' } } as const;
/** Clients read it, and these models have no tokens. */
const NO_USAGE = { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details: { image_tokens: 0, text_tokens: 0 } };

interface StreamFacts extends AnswerFacts {
  /** `512x512` */
  readonly size: string;
  /** What the names of the events begin with. */
  readonly events: 'image_generation' | 'image_edit';
}

export function createImageStream(parameters: ImageParameters, { created, hal0, size, events }: StreamFacts) {
  const { partialImages, outputFormat } = parameters;
  let hasBegun = false;
  let sent = 0;

  function* send(event: string, image: Uint8Array, fields: object): Steps<void> {
    if (!hasBegun) yield* begin(EVENTS);
    hasBegun = true;
    const type = `${events}.${event}`;
    const common = { created_at: created, size, quality: 'auto', background: 'opaque' };
    // The fields after the image, without the brace before them.
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

    /** One image is in memory at a time. An error is still possible until the first event has been sent. */
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
