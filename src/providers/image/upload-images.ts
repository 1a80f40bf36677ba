/** Checks the files of an edit and sends them to the server in pieces, none of them in memory as a whole. */
import { ask, formBody, readFile } from '../translation-steps.ts';
import type { FormFile, Steps, TranslatableRequest, TranslationEnd } from '../translation.ts';
import type { ImageSource } from './decide/build-workflow.ts';
import { wrongMask, type Drawable } from './decide/drawable.ts';
import { parseUploaded } from './decide/comfy-answers.ts';
import { imageFailed } from './decide/describe-failure.ts';
import { FACTS_BYTES, readImageFacts, type ImageFacts } from '../decide/read-image-facts.ts';
import { chooseFiles, editSize, judgeImage, judgeMask } from './decide/image-facts.ts';
import { endsAs } from './decide/image-bytes.ts';
import type { ImageParameters, ImageSize, ImageTask } from './decide/image-parameters.ts';

/** Without a mask, so much of an image changes that its composition stays. */
const STRENGTHS: Readonly<Record<ImageTask, number>> = { generation: 1, edit: 0.75, variation: 0.6 };
const SUBFOLDER = 'svc';
const TAIL_BYTES = 16;

interface Upload {
  readonly source: ImageSource;
  readonly size: ImageSize | undefined;
}

interface UploadFor extends Pick<ImageParameters, 'size' | 'strength'> {
  readonly drawable: Drawable;
  readonly task: ImageTask;
}

export function* uploadImages(
  { body, boundary }: TranslatableRequest,
  id: string,
  { drawable, task, size, strength }: UploadFor,
): Steps<Upload | TranslationEnd> {
  const chosen = chooseFiles(body, drawable.rules.title, drawable.images);
  if (!chosen.ok) return { kind: 'refuse', ...chosen.problem };
  const { images, mask } = chosen.files;
  const misfit = wrongMask(drawable, mask !== undefined);
  if (misfit !== undefined) return refusal(misfit);
  const looked: ImageFacts[] = [];
  for (const image of images) {
    const { facts, isWhole } = yield* look(image);
    const problem = judgeImage(facts, isWhole);
    if (problem !== undefined || facts === undefined) return refusal(problem);
    looked.push(facts);
  }
  const [first] = looked;
  if (first === undefined) return NOT_TAKEN;
  if (mask !== undefined) {
    const { facts, isWhole } = yield* look(mask);
    const maskProblem = judgeMask(facts, isWhole, first);
    if (maskProblem !== undefined) return refusal(maskProblem);
  }
  const nameOf = (index: number, format: string): string => `${id}-image${index === 0 ? '' : `-${index + 1}`}.${format}`;
  const named = looked.map(({ format, width, height }, index) => ({ name: nameOf(index, format), width, height }));
  for (const [index, image] of images.entries()) if (!(yield* upload(image, named[index]?.name ?? '', boundary))) return NOT_TAKEN;
  const maskName = `${id}-mask.png`;
  if (mask !== undefined && !(yield* upload(mask, maskName, boundary))) return NOT_TAKEN;
  const [one, ...more] = named.map((each) => ({ ...each, name: `${SUBFOLDER}/${each.name}` }));
  if (one === undefined) return NOT_TAKEN;
  const source = {
    images: [one, ...more],
    mask: mask === undefined ? undefined : `${SUBFOLDER}/${maskName}`,
    strength: strength ?? (mask === undefined ? STRENGTHS[task] : 1),
  } satisfies ImageSource;
  return { source, size: size ?? (drawable.workflow === undefined ? editSize(first, drawable.rules) : undefined) };
}

const NOT_TAKEN = imageFailed('The image server did not accept the image to be changed; read the log of the slot');

const refusal = (problem: ReturnType<typeof judgeImage>): TranslationEnd =>
  problem === undefined ? NOT_TAKEN : { kind: 'refuse', ...problem };

function* look(file: FormFile): Steps<{ readonly facts: ImageFacts | undefined; readonly isWhole: boolean }> {
  const facts = readImageFacts(yield* readFile(file, 0, Math.min(FACTS_BYTES, file.bytes)));
  const tail = yield* readFile(file, Math.max(0, file.bytes - TAIL_BYTES), Math.min(TAIL_BYTES, file.bytes));
  // Bytes after the end of a JPEG image, as cameras write them, do no harm.
  return { facts, isWhole: facts?.format !== 'png' || endsAs('png', tail) };
}

function* upload(file: FormFile, fileName: string, boundary: string): Steps<boolean> {
  const fields = [
    { name: 'type', value: 'input' },
    { name: 'subfolder', value: SUBFOLDER },
    { name: 'overwrite', value: 'true' },
  ];
  const answer = yield* ask({ method: 'POST', path: '/upload/image', ...formBody(boundary, fields, [{ name: 'image', fileName, file }]) });
  const uploaded = parseUploaded(answer);
  return uploaded?.name === fileName && uploaded.subfolder === SUBFOLDER;
}
