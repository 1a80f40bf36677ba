/** Refuses a request body for what the headers say about it, before it is read. Pure. */
import { z } from 'zod';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { BodyLimit } from '../../route/decide/request-limits.ts';
import { boundaryOf } from './multipart-head.ts';
import type { RequestHead } from '../../upstream/decide/request-head.ts';
import type { Settings } from '../../../schema/settings/settings.ts';
import type { BodyProblem } from '../body-scan.ts';
import type { FoundUrl } from '../media-scanner.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { VoiceName } from '../../../schema/words/names.ts';

export function refuseBody(
  { head, isMultipart }: { readonly head: RequestHead; readonly isMultipart: boolean },
  limit: BodyLimit,
): readonly [ErrorCode, string, string?] | undefined {
  const { contentLength, contentEncoding, contentType = '', chunked } = head;
  if (contentLength !== undefined && contentLength > limit.wholeBytes) return bodyTooLarge(limit);
  if (contentEncoding !== undefined && contentEncoding !== 'identity') {
    return ['request.media_type', 'Send the body without a content encoding: compressed bodies are not supported', 'Content-Encoding'];
  }
  if (!chunked && (contentLength === undefined || contentLength === 0)) {
    return ['request.invalid', isMultipart ? 'Send a multipart body' : 'Send a JSON object as the body'];
  }
  if (!isMultipart || boundaryOf(contentType) !== undefined) return undefined;
  return ['request.invalid', 'Name the boundary of the multipart body in the header "Content-Type", once', 'Content-Type'];
}

export function bodyTooLarge({ bytes, setting }: Pick<BodyLimit, 'bytes' | 'setting'>): readonly [ErrorCode, string] {
  const what = setting === 'SVC_AUDIO_LIMIT' ? 'Send a smaller or shorter file' : 'Send a smaller body';
  return ['request.too_large', `${what}: the limit is ${bytes} bytes ("${setting}")`];
}

/** Which URLs of images in chats are accepted: `data:` URLs always, others only where the service may fetch them. A model server never gets one. Pure. */

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

/** Whether a request for speech has a text of a permitted length, and which voice it names. Everything else is left to the model server. Pure. */

const Request = z.object({ input: z.string(), voice: z.unknown().optional(), ref_audio: z.unknown().optional() });
/** OpenAI's clients send a name, or an object with an id. */
const Voice = z.union([VoiceName, z.object({ id: VoiceName }).transform(({ id }) => id)]);
/** Of UTF-8: clients may begin a body with it. */
const BYTE_ORDER_MARK = '\ufeff';

interface SpeechProblem {
  readonly message: string;
  readonly param: string | null;
}

interface CheckedSpeech {
  /** Undefined: nothing is wrong. */
  readonly problem?: SpeechProblem;
  /** What may be the name of a stored voice. Undefined as well if the request brings a recording of its own. */
  readonly voice?: VoiceName | undefined;
}

/** `limit` in characters, of which an emoji is one. */
export function checkSpeech(body: string, limit: number): CheckedSpeech {
  const json = parseJson(body.startsWith(BYTE_ORDER_MARK) ? body.slice(1) : body);
  if (json === undefined) return wrong('Send a JSON object as the body', null);
  const request = Request.safeParse(json).data;
  if (request === undefined) return wrong('Write the text to speak as a string in "input"');
  const { input, voice, ref_audio: recording } = request;
  if (input.trim() === '') return wrong('Write the text to speak in "input": it is empty');
  const named = recording === undefined || recording === null ? Voice.safeParse(voice).data : undefined;
  // Counting characters takes longer than the number of code units, of which there are at least as many.
  if (input.length <= limit) return { voice: named };
  const characters = Array.from(input).length;
  if (characters <= limit) return { voice: named };
  return wrong(`Send at most ${limit} characters in "input" ("SVC_SPEECH_LIMIT"): it has ${characters}`);
}

const wrong = (message: string, param: string | null = 'input'): CheckedSpeech => ({ problem: { message, param } });
