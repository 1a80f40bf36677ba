/**
 * The bodies of chats: finds the URLs of media where a model server would fetch them, refuses those that may not be
 * fetched, and replaces the others by the images before the request is routed. A model server only gets `data:` URLs,
 * which carry the media. The rest of the body stays as it is, byte for byte.
 */
import { jsonFields, STRING_LIMIT, type JsonFilter } from '../../schema/words/json-scanner.ts';
import { decodeJsonString } from '../../schema/words/json-skipper.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { shorten } from '../../schema/words/nearest-word.ts';
import type { BodyEvents, BodyProblem, EditableBody } from '../body/body-scan.ts';
import { COMMON_FIELDS, JsonBody, type JsonTag } from '../body/json-body.ts';
import { bodyLimitOf, bodyTooLarge } from '../route/decide/request-limits.ts';
import { refuseMedia, SHOWN_URL, type FoundUrl } from './decide/check-media.ts';
import type { FetchImage } from './fetch-image.ts';

type Filter = JsonFilter<JsonTag>;

const IMAGE: Filter = { tag: 'image' };
const TEXT: Filter = { tag: 'text' };
const urlOf = (tag: 'image' | 'audio' | 'other'): Filter => ({ tag, fields: jsonFields({ url: { tag } }) });
const MEDIA: Readonly<Record<string, Filter>> = {
  image_url: urlOf('image'),
  video_url: urlOf('other'),
  audio_url: urlOf('audio'),
  input_audio: { tag: 'audio' },
  file_url: urlOf('other'),
  // The Messages API: { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": … } }
  source: { fields: jsonFields({ url: IMAGE, media_type: { tag: 'type' } }) },
};
/** Results of tools have parts of their own. */
const PARTS: Filter = {
  items: { fields: jsonFields({ ...MEDIA, text: TEXT, content: { items: { fields: jsonFields(MEDIA) } } }) },
};
const CONTENT: Filter = { ...TEXT, ...PARTS };
const ROLE: Filter = { tag: 'role' };

/** The media in Chat Completions, in the Responses API and in the Messages API. */
const CHAT: Filter = {
  fields: jsonFields<JsonTag>({
    ...COMMON_FIELDS,
    messages: { items: { tag: 'message', fields: jsonFields({ role: ROLE, content: CONTENT }) } },
    input: {
      ...TEXT,
      items: { tag: 'message', fields: jsonFields({ ...MEDIA, role: ROLE, content: CONTENT, output: PARTS }) },
    },
  }),
};

/** `data:` with each character written as `\uXXXX`. */
const SCHEME_LIMIT = 30;
const DATA = /^data:/i;
const IMAGE_TYPE = /^image\\?\//i;

interface ChatBodyDeps {
  readonly settings: Pick<Settings, 'SVC_FETCH_IMAGES' | 'SVC_BODY_LIMIT' | 'SVC_AUDIO_LIMIT'>;
  readonly fetchImage: FetchImage;
  /** Returns the problem with a URL; `before` URLs were accepted already. Default: `refuseMedia`. */
  readonly check?: (url: FoundUrl, before: number) => BodyProblem | undefined;
}

export function createChatBody({ settings, fetchImage, check }: ChatBodyDeps): JsonBody {
  const policy = settings.SVC_FETCH_IMAGES;
  const urls: FoundUrl[] = [];
  const media = new Map<'vision' | 'audio', string>();
  const note = (tag: JsonTag, { path }: { readonly path: string }): void => {
    if (tag === 'image' && !media.has('vision')) media.set('vision', path);
    else if (tag === 'audio' && !media.has('audio')) media.set('audio', path);
  };
  return new JsonBody({
    filter: CHAT,
    keepsAll: policy !== 'off',
    media,
    onObject: note,
    check(scanner, { tag, from, to }) {
      const begins = scanner.raw(SCHEME_LIMIT);
      if (tag === 'type') return void (IMAGE_TYPE.test(begins) && note('image', scanner));
      note(tag, scanner);
      if (beginsWithData(begins)) return undefined;
      const url = to - from - 2 > STRING_LIMIT ? undefined : decodeJsonString(scanner.raw(STRING_LIMIT));
      const found: FoundUrl = { param: scanner.path, media: tag === 'image' ? tag : 'other', url, from, to };
      const problem = check === undefined ? refuseMedia(found, policy, urls.length) : check(found, urls.length);
      if (problem === undefined) urls.push(found);
      return problem;
    },
    delaysRouting(body, events) {
      if (urls.length === 0) return false;
      void insertImages(body, { urls, fetchImage, events, settings });
      return true;
    },
  });
}

/** The text may end within an escape, which is then left out. */
function beginsWithData(raw: string): boolean {
  const text = raw.replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, '');
  return DATA.test(decodeJsonString(text) ?? '');
}

interface ImagesToInsert extends Pick<ChatBodyDeps, 'settings' | 'fetchImage'> {
  readonly urls: readonly FoundUrl[];
  readonly events: BodyEvents;
}

async function insertImages(body: EditableBody, { urls, fetchImage, events, settings }: ImagesToInsert): Promise<void> {
  const fetching = new AbortController();
  body.onRelease = () => fetching.abort();
  const onBytes = (bytes: number): boolean => {
    events.onProgress();
    // For the image itself, and its text in Base64.
    return !body.isReleased && body.reserve(bytes * 3);
  };
  const pieces = await inlineImages(Buffer.concat(body.chunks), urls, (url) => fetchImage(url, { signal: fetching.signal, onBytes }));
  fetching.abort();
  if (body.isReleased) return;
  if ('message' in pieces) return events.fail('request.invalid', pieces.message, pieces.param);
  body.replace(pieces);
  const limit = bodyLimitOf({}, settings);
  if (body.received > limit.wholeBytes) events.fail(...bodyTooLarge(limit));
  else events.onRoutable();
}

/** Returns the pieces of the new body, or the problem with the first image that cannot be fetched. Never rejects. */
async function inlineImages(
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
      return { param, message: `The image "${shorten(url, SHOWN_URL)}" cannot be fetched (${why}): send it as a "data:" URL` };
    }
    pieces.push(body.subarray(at, from), Buffer.from(`"data:${image.type};base64,${image.bytes.toString('base64')}"`, 'latin1'));
    at = to;
  }
  pieces.push(body.subarray(at));
  return pieces;
}
