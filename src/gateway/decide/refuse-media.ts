/** Which URLs of images in chats are accepted: `data:` URLs always, others only where the service may fetch them. A model server never gets one. Pure. */
import type { Settings } from '../../schema/settings/settings.ts';
import type { BodyProblem } from '../body/body-scan.ts';
import type { FoundUrl } from '../body/media-scanner.ts';
import { shorten } from '../../schema/shorten.ts';

/** Of one request. */
const MOST_IMAGES = 8;
/** Of a URL in a message. */
const SHOWN = 120;

/** `before`: number of URLs that were found before this one. */
export function refuseMedia(
  { url, media, param }: Pick<FoundUrl, 'url' | 'media' | 'param'>,
  policy: Settings['SVC_FETCH_IMAGES'],
  before: number,
): BodyProblem | undefined {
  const refused = (message: string): BodyProblem => ({ message, param });
  const shown = url === undefined ? 'a URL of more than 8192 bytes' : `"${shorten(url, SHOWN)}"`;
  if (media === 'other') return refused(`Send media as "data:" URLs: the service does not fetch ${shown}`);
  if (policy === 'off') return refused(`Send images as "data:" URLs: the service does not fetch ${shown} ("SVC_FETCH_IMAGES")`);
  const parsed = url === undefined ? null : URL.parse(url);
  if (parsed === null) return refused(`Send images as "data:" or "https:" URLs, not ${shown}`);
  const schemes = policy === 'http' ? ['https:', 'http:'] : ['https:'];
  if (!schemes.includes(parsed.protocol)) {
    return refused(`Send images as "data:" or "https:" URLs: the service does not fetch ${shown} ("SVC_FETCH_IMAGES" is "${policy}")`);
  }
  if (parsed.username !== '' || parsed.password !== '') return refused('Send URLs of images without a user and a password');
  if (before >= MOST_IMAGES) return refused(`Send at most ${MOST_IMAGES} images by URL, and others as "data:" URLs`);
  return undefined;
}
