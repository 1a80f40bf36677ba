/** Decides which URLs of media in chats are accepted: images only, where the service may fetch them. Pure. */
import type { Settings } from '../../../schema/settings/settings.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { BodyProblem } from '../../body/body-scan.ts';

/** A URL in a body that is not a `data:` URL. */
export interface FoundUrl {
  /** Such as `messages[0].content[1].image_url.url`. */
  readonly param: string;
  readonly media: 'image' | 'other';
  /** Undefined if it is too long or not a valid string. */
  readonly url: string | undefined;
  /** Offsets of the string in the body, with its quotes. */
  readonly from: number;
  readonly to: number;
}

const MOST_IMAGES = 8;
/** Characters of a URL in a message. */
export const SHOWN_URL = 120;

/** `before`: number of URLs that were found before this one. */
export function refuseMedia(
  { url, media, param }: Pick<FoundUrl, 'url' | 'media' | 'param'>,
  policy: Settings['SVC_FETCH_IMAGES'],
  before: number,
): BodyProblem | undefined {
  const refused = (message: string): BodyProblem => ({ message, param });
  const shown = url === undefined ? 'a URL of more than 8192 bytes' : `"${shorten(url, SHOWN_URL)}"`;
  if (media === 'other') return refused(`The service does not fetch ${shown}: send media as "data:" URLs`);
  if (policy === 'off') return refused(`The service does not fetch ${shown} ("SVC_FETCH_IMAGES"): send images as "data:" URLs`);
  const parsed = url === undefined ? null : URL.parse(url);
  if (parsed === null) return refused(`Cannot fetch ${shown}: send images as "data:" or "https:" URLs`);
  const schemes = policy === 'http' ? ['https:', 'http:'] : ['https:'];
  if (!schemes.includes(parsed.protocol)) {
    return refused(`The service does not fetch ${shown} ("SVC_FETCH_IMAGES" is "${policy}"): send images as "data:" or "https:" URLs`);
  }
  if (parsed.username !== '' || parsed.password !== '') return refused('The URL of an image contains a user or a password: remove them');
  if (before >= MOST_IMAGES) return refused(`More than ${MOST_IMAGES} images are sent by URL: send the others as "data:" URLs`);
  return undefined;
}
