/** Which images may be edited, by their facts. Pure. */
import type { ImageFacts } from '../../decide/read-image-facts.ts';
import type { FormFile, TranslatableBody } from '../../translation.ts';
import { SIDES, type ImageFamily } from './image-families.ts';
import { badField, type Checked, type ImageSize, type ParameterProblem } from './image-parameters.ts';

type ChosenFiles = Checked<{
  readonly files: { readonly images: readonly [FormFile, ...FormFile[]]; readonly mask: FormFile | undefined };
}>;

/** Limit of OpenAI's API. */
const MOST_FILE_BYTES = 50_000_000;
/** Decoded, such an image takes 200 MB in the image server. */
const MOST_SIDE = 4096;

/** Clients name one image `image` and several `image[]`. */
export function chooseFiles(body: TranslatableBody, title: string, mostImages = 1): ChosenFiles {
  const named = (...names: readonly string[]) => (body.kind === 'form' ? body.files.filter(({ name }) => names.includes(name)) : []);
  const refuse = (param: string, message: string): ChosenFiles => ({ ok: false, problem: badField(param, message) });
  const [image, ...others] = named('image', 'image[]');
  const [mask, ...masks] = named('mask');
  if (image === undefined) return refuse('image', 'Send the image to be changed as the file "image" of a form');
  if (others.length >= mostImages)
    return refuse(
      'image',
      `Models of ${title} cannot join ${others.length + 1} images; send ${mostImages === 1 ? 'one' : `at most ${mostImages}`}`,
    );
  if (masks.length > 0) return refuse('mask', 'Send one "mask"');
  for (const file of [image, ...others, ...(mask === undefined ? [] : [mask])]) {
    if (file.bytes === 0 || file.bytes > MOST_FILE_BYTES)
      return refuse(file.name, `File "${file.name}" has ${file.bytes} bytes; send 1 to ${MOST_FILE_BYTES}`);
  }
  return { ok: true, files: { images: [image, ...others], mask } };
}

/** `isWhole`: the file ends like its format. */
export function judgeImage(facts: ImageFacts | undefined, isWhole: boolean, param = 'image'): ParameterProblem | undefined {
  if (facts === undefined) return badField(param, `Send a PNG, JPEG or WebP image as "${param}"`);
  const { width, height, isAnimated } = facts;
  if (width > MOST_SIDE || height > MOST_SIDE)
    return badField(param, `Image "${param}" has ${width}x${height} pixels; send at most ${MOST_SIDE}x${MOST_SIDE}`);
  if (isAnimated) return badField(param, `Image "${param}" is an animation; send a single image`);
  return isWhole ? undefined : badField(param, `Image "${param}" is cut off; send the whole file`);
}

export function judgeMask(mask: ImageFacts | undefined, isWhole: boolean, image: ImageFacts): ParameterProblem | undefined {
  const found = judgeImage(mask, isWhole, 'mask');
  if (found !== undefined || mask === undefined) return found;
  if (mask.format !== 'png' || !mask.hasAlpha)
    return badField('mask', 'Send a PNG image with an alpha channel as "mask": where it is transparent, the image is changed');
  if (mask.width === image.width && mask.height === image.height) return undefined;
  const message = `The mask has ${mask.width}x${mask.height} pixels; send one as large as the image, which has ${image.width}x${image.height}`;
  return badField('mask', message);
}

export function editSize({ width, height }: ImageFacts, { multiple }: Pick<ImageFamily, 'multiple'>): ImageSize {
  const scale = Math.min(1, SIDES.most / Math.max(width, height));
  const side = (pixels: number): number => Math.max(SIDES.least, Math.floor((pixels * scale) / multiple) * multiple);
  return { width: side(width), height: side(height) };
}
