/** Decides which URLs of media in chats are accepted: images only, where the service may fetch them. Pure. */
import { z } from 'zod';
import type { Settings } from '../../../schema/settings/settings.ts';
import { jsonExcess } from '../../../schema/words/json-skipper.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { BodyProblem } from '../../body/body-scan.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { VoiceName } from '../../../schema/words/names.ts';

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
  if (!schemes.includes(parsed.protocol))
    return refused(`The service does not fetch ${shown} ("SVC_FETCH_IMAGES" is "${policy}"): send images as "data:" or "https:" URLs`);
  if (parsed.username !== '' || parsed.password !== '') return refused('The URL of an image contains a user or a password: remove them');
  if (before >= MOST_IMAGES) return refused(`More than ${MOST_IMAGES} images are sent by URL: send the others as "data:" URLs`);
  return undefined;
}

/** Checks the length of the text in a request for speech, and finds its voice. The rest is left to the server. Pure. */

const Request = z.object({ input: z.string(), voice: z.unknown().optional(), ref_audio: z.unknown().optional() });
/** OpenAI's clients send a name, or an object with an id. */
const Voice = z.union([VoiceName, z.object({ id: VoiceName }).transform(({ id }) => id)]);
/** Clients may begin a body with it. */
const BYTE_ORDER_MARK = '\ufeff';

interface CheckedSpeech {
  readonly problem?: BodyProblem;
  /** Possibly the name of a stored voice. Undefined if the request brings a recording of its own. */
  readonly voice?: VoiceName | undefined;
}

/** `limit` in characters; an emoji counts as one. */
export function checkSpeech(body: string, limit: number): CheckedSpeech {
  const excess = jsonExcess(body);
  if (excess !== undefined) return wrong(excess, null);
  const json = parseJson(body.startsWith(BYTE_ORDER_MARK) ? body.slice(1) : body);
  if (json === undefined) return wrong('The body is not a JSON object', null);
  const request = Request.safeParse(json).data;
  if (request === undefined) return wrong('"input" is not a string: send the text to speak');
  const { input, voice, ref_audio: recording } = request;
  if (input.trim() === '') return wrong('"input" is empty: send the text to speak');
  const named = recording === undefined || recording === null ? Voice.safeParse(voice).data : undefined;
  // Counting characters takes longer than the number of code units, of which there are at least as many.
  if (input.length <= limit) return { voice: named };
  const characters = Array.from(input).length;
  if (characters <= limit) return { voice: named };
  return wrong(`"input" has ${characters} characters: send at most ${limit} ("SVC_SPEECH_LIMIT")`);
}

const wrong = (message: string, param: string | null = 'input'): CheckedSpeech => ({ problem: { message, param } });
