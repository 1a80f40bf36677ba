/** Where the bodies of chats name images and other media by URL: in the forms of Chat Completions, of the Responses API and of the Messages API. Pure. */

/** What is of interest in a JSON value: the value itself if it is a string, the items of an array, or some fields of an object. */
export interface MediaPath {
  /** A string here is a URL from which a model server would fetch media. */
  readonly isUrl?: 'image' | 'other';
  readonly items?: MediaPath;
  readonly fields?: ReadonlyMap<string, MediaPath>;
}

const path = (fields: Readonly<Record<string, MediaPath>>): MediaPath => ({ fields: new Map(Object.entries(fields)) });

const urlOf = (isUrl: 'image' | 'other'): MediaPath => ({ isUrl, ...path({ url: { isUrl } }) });

const MEDIA: Readonly<Record<string, MediaPath>> = {
  image_url: urlOf('image'),
  video_url: urlOf('other'),
  audio_url: urlOf('other'),
  file_url: urlOf('other'),
  // The Messages API: { "type": "image", "source": { "type": "url", "url": … } }
  source: path({ url: { isUrl: 'image' } }),
};

/** The results of tools have parts of their own. */
const PARTS: MediaPath = { items: path({ ...MEDIA, content: { items: path(MEDIA) } }) };

/** By the key at the top level of a body. */
export const MEDIA_PATHS: ReadonlyMap<string, MediaPath> = new Map([
  ['messages', { items: path({ content: PARTS }) }],
  ['input', { items: path({ ...MEDIA, content: PARTS, output: PARTS }) }],
]);
