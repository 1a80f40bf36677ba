/** Replaces the URLs of images in a chat by the images. The rest of the body stays as it is, byte for byte. */
import type { BodyProblem } from './body/body-scan.ts';
import { shorten } from '../schema/shorten.ts';
import type { FetchImage } from './translate/fetch-image.ts';
import type { FoundUrl } from './body/media-scanner.ts';

/** Of a URL in a message. */
const SHOWN = 120;

/** Returns the pieces of the new body, or what is wrong with the first image that cannot be fetched. Never rejects. */
export async function inlineImages(
  body: Buffer,
  urls: readonly FoundUrl[],
  fetchImage: (url: string) => ReturnType<FetchImage>,
): Promise<readonly Buffer[] | BodyProblem> {
  const known = new Map<string, ReturnType<FetchImage>>();
  for (const { url = '' } of urls) if (!known.has(url)) known.set(url, fetchImage(url));
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { url = '', from, to, param } of urls) {
    const image = await known.get(url);
    if (image?.ok !== true) {
      const why = image?.why ?? 'it was not fetched';
      return { param, message: `Send the image as a "data:" URL: "${shorten(url, SHOWN)}" cannot be fetched: ${why}` };
    }
    pieces.push(body.subarray(at, from), Buffer.from(`"data:${image.type};base64,${image.bytes.toString('base64')}"`, 'latin1'));
    at = to;
  }
  pieces.push(body.subarray(at));
  return pieces;
}
