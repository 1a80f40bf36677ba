/** Fetches the images of a job and responds with URLs of the cache, or base64. */
import { ask, begin, keepImage, nextBytes, open, write } from '../translation-steps.ts';
import type { Steps, TranslationEnd, UpstreamRequest } from '../translation.ts';
import type { SavedImage } from './decide/comfy-answers.ts';
import { imageFailed } from './decide/describe-failure.ts';
import { base64, beginsAs, encodePiece, endsAs, MAGIC_BYTES, textAround } from './decide/image-bytes.ts';
import type { ImageParameters } from './decide/image-parameters.ts';

export const MOST_IMAGE_BYTES = 64 * 1024 * 1024;

export interface AnswerFacts {
  /** Unix seconds. */
  readonly created: number;
  /** For debugging: `_hal0` of the response. */
  readonly hal0: { readonly workflow: string; readonly checkpoint: string; readonly ignored?: readonly string[] };
}

export function answerWith(images: readonly SavedImage[], parameters: ImageParameters, facts: AnswerFacts): Steps<TranslationEnd> {
  if (parameters.responseFormat === 'url') return answerWithUrls(images, facts);
  const [first] = images;
  return images.length === 1 && first !== undefined ? answerWithOne(first, parameters, facts) : answerInPieces(images, parameters, facts);
}

function* answerWithUrls(images: readonly SavedImage[], { created, hal0 }: AnswerFacts): Steps<TranslationEnd> {
  const data: { readonly url: string }[] = [];
  for (const image of images) {
    const kept = yield* keepImage(viewOf(image));
    if (!kept.ok) return imageFailed(kept.problem);
    data.push({ url: kept.url });
  }
  return { kind: 'answer', status: 200, contentType: 'application/json', body: JSON.stringify({ created, data, _hal0: hal0 }) };
}

export const NOT_AN_IMAGE = 'The image server did not send a complete image; read the log of the slot';

/** Errors are possible until the image is complete. */
function* answerWithOne(image: SavedImage, parameters: ImageParameters, { created, hal0 }: AnswerFacts): Steps<TranslationEnd> {
  const { outputFormat } = parameters;
  const { status, body } = yield* ask(viewOf(image, parameters), MOST_IMAGE_BYTES);
  if (status !== 200 || !beginsAs(outputFormat, body) || !endsAs(outputFormat, body)) return imageFailed(NOT_AN_IMAGE);
  const pieces = textAround(`{"created":${created},"data":[{"b64_json":"`, body, `"}],"_hal0":${JSON.stringify(hal0)}}`);
  yield* begin({ status: 200, contentType: 'application/json' });
  for (const piece of pieces) yield* write(piece);
  return { kind: 'written' };
}

/** Passes several images on in pieces, none of them in memory as a whole. */
function* answerInPieces(
  images: readonly SavedImage[],
  parameters: ImageParameters,
  { created, hal0 }: AnswerFacts,
): Steps<TranslationEnd> {
  const { outputFormat } = parameters;
  for (const [index, image] of images.entries()) {
    const { status } = yield* open(viewOf(image, parameters));
    let last = yield* firstBytes();
    if (status !== 200 || !beginsAs(outputFormat, last)) return imageFailed(NOT_AN_IMAGE);
    if (index === 0) yield* begin({ status: 200, contentType: 'application/json' });
    yield* write(index === 0 ? `{"created":${created},"data":[{"b64_json":"` : ',{"b64_json":"');
    let { text, rest } = encodePiece(new Uint8Array(), last);
    yield* write(text);
    for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) {
      ({ text, rest } = encodePiece(rest, bytes));
      if (text !== '') yield* write(text);
      last = Buffer.concat([last.subarray(-MAGIC_BYTES), bytes]);
    }
    if (!endsAs(outputFormat, last)) return imageFailed(NOT_AN_IMAGE);
    yield* write(`${base64(rest)}"}`);
  }
  yield* write(`],"_hal0":${JSON.stringify(hal0)}}`);
  return { kind: 'written' };
}

function* firstBytes(): Steps<Uint8Array> {
  let bytes: Uint8Array = new Uint8Array();
  while (bytes.length < MAGIC_BYTES) {
    const more = yield* nextBytes();
    if (more === undefined) return bytes;
    bytes = Buffer.concat([bytes, more]);
  }
  return bytes;
}

export function viewOf(
  { filename, subfolder, type }: SavedImage,
  parameters?: Pick<ImageParameters, 'outputFormat' | 'quality'>,
): UpstreamRequest {
  const query = new URLSearchParams({ filename, subfolder, type });
  if (parameters !== undefined && parameters.outputFormat !== 'png')
    query.set('preview', `${parameters.outputFormat};${parameters.quality}`);
  return { method: 'GET', path: `/view?${query.toString()}` };
}
