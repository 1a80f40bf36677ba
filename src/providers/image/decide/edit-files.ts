/** Which files of a request to change an image are used, whether they can be, and how large the result is. Pure. */
import type { FormFile, TranslatableBody } from '../../translation.ts';
import type { ImageFacts } from './image-facts.ts';
import { SIDES, type ImageFamily } from './image-families.ts';
import type { ParameterProblem } from './request-fields.ts';

export interface EditFiles {
  readonly image: FormFile;
  readonly mask: FormFile | undefined;
}

export type ChosenFiles = { readonly ok: true; readonly files: EditFiles } | { readonly ok: false; readonly problem: ParameterProblem };

/** As OpenAI's API. */
const MOST_FILE_BYTES = 50_000_000;
/** Decoded, an image of this size takes 200 MB in the image server. */
const MOST_SIDE = 4096;

const problem = (param: string, message: string): ParameterProblem => ({ code: 'request.invalid', message, param });

/** Clients name one image `image` and several `image[]`. */
export function chooseFiles(body: TranslatableBody, title: string): ChosenFiles {
  const named = (...names: readonly string[]) => (body.kind === 'form' ? body.files.filter(({ name }) => names.includes(name)) : []);
  const refuse = (param: string, message: string): ChosenFiles => ({ ok: false, problem: problem(param, message) });
  const [image, ...others] = named('image', 'image[]');
  const [mask, ...masks] = named('mask');
  if (image === undefined) return refuse('image', 'Send the image to be changed as the file "image" of a form');
  if (others.length > 0) return refuse('image', `Send one image: models of ${title} cannot join ${others.length + 1} images`);
  if (masks.length > 0) return refuse('mask', 'Send one "mask"');
  for (const file of [image, ...(mask === undefined ? [] : [mask])]) {
    if (file.bytes === 0 || file.bytes > MOST_FILE_BYTES)
      return refuse(file.name, `Send a file "${file.name}" of 1 to ${MOST_FILE_BYTES} bytes: this one has ${file.bytes}`);
  }
  return { ok: true, files: { image, mask } };
}

/** Undefined facts: the bytes are not an image. `isWhole`: the file ends as its format does. */
export function judgeImage(facts: ImageFacts | undefined, isWhole: boolean, param = 'image'): ParameterProblem | undefined {
  if (facts === undefined) return problem(param, `Send a PNG, JPEG or WebP image as "${param}"`);
  const { width, height, isAnimated } = facts;
  if (width > MOST_SIDE || height > MOST_SIDE)
    return problem(param, `Send an image of at most ${MOST_SIDE}x${MOST_SIDE} pixels as "${param}": this one has ${width}x${height}`);
  if (isAnimated) return problem(param, `Send a single image as "${param}", not an animation`);
  return isWhole ? undefined : problem(param, `Send the whole file as "${param}": this one ends too early`);
}

/** Where a mask is transparent, the image is changed. */
export function judgeMask(mask: ImageFacts | undefined, isWhole: boolean, image: ImageFacts): ParameterProblem | undefined {
  const found = judgeImage(mask, isWhole, 'mask');
  if (found !== undefined || mask === undefined) return found;
  if (mask.format !== 'png' || !mask.hasAlpha)
    return problem('mask', 'Send a PNG image with an alpha channel as "mask": where it is transparent, the image is changed');
  if (mask.width === image.width && mask.height === image.height) return undefined;
  const message = `Send a "mask" as large as the image, which has ${image.width}x${image.height} pixels: this one has ${mask.width}x${mask.height}`;
  return problem('mask', message);
}

/** That of the image, if the request names none: made smaller where it is too large, and cut to multiples of the family. */
export function editSize(
  { width, height }: ImageFacts,
  { multiple }: Pick<ImageFamily, 'multiple'>,
): { readonly width: number; readonly height: number } {
  const scale = Math.min(1, SIDES.most / Math.max(width, height));
  const side = (pixels: number): number => Math.max(SIDES.least, Math.floor((pixels * scale) / multiple) * multiple);
  return { width: side(width), height: side(height) };
}
