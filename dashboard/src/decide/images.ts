/**
 * Generated and edited images: the request, the events of a stream, and the gallery. The service caches the files; the
 * browser keeps their URLs and settings. Pure.
 */
import type { Table } from './patch.ts';
import { at, listOf, parseJson, textOf } from './untrusted.ts';

/** The fields of the form, as typed; an empty one is left to the model. */
export type ImageSettings = Readonly<Record<'prompt' | 'negative' | 'size' | 'seed' | 'steps', string>>;

export function readSettings(value: unknown): ImageSettings {
  const text = (key: keyof ImageSettings): string => textOf(at(value, key));
  return { prompt: text('prompt'), negative: text('negative'), size: text('size'), seed: text('seed'), steps: text('steps') };
}

export const imageBody = (model: string, { prompt, negative, size, seed, steps }: ImageSettings): Table => ({
  model,
  prompt,
  ...(negative.trim() === '' ? {} : { negative_prompt: negative }),
  ...(size === '' ? {} : { size }),
  ...(seed === '' ? {} : { seed: Number(seed) }),
  ...(steps === '' ? {} : { steps: Number(steps) }),
});

export interface Drawing {
  /** A `data:` URL; undefined before the first preview. */
  readonly preview: string | undefined;
  readonly done: readonly string[];
  readonly failure: string;
  /** Fields of the request without effect. */
  readonly ignored: readonly string[];
}

export const NOTHING_DRAWN: Drawing = { preview: undefined, done: [], failure: '', ignored: [] };

const FORMATS = ['png', 'jpeg', 'webp'];

/** `data` is that field of one event of a generation or an edit. Unknown events change nothing. */
export function extendDrawing(drawing: Drawing, data: string): Drawing {
  const event = parseJson(data);
  const failure = textOf(at(at(event, 'error'), 'message'));
  if (failure !== '') return { ...drawing, failure };
  const bytes = textOf(at(event, 'b64_json'));
  if (bytes === '') return drawing;
  const format = FORMATS.find((name) => name === at(event, 'output_format')) ?? 'png';
  const url = `data:image/${format};base64,${bytes}`;
  if (textOf(at(event, 'type')).endsWith('.partial_image')) return { ...drawing, preview: url };
  return { ...drawing, preview: undefined, done: [...drawing.done, url], ignored: ignoredOf(event) };
}

export const ignoredOf = (answer: unknown): readonly string[] => listOf(at(at(answer, '_hal0'), 'ignored')).map(textOf);

export interface KeptImage extends ImageSettings {
  /** Path on this service: `/api/images/cache/….png`. */
  readonly url: string;
}

const MAX_KEPT = 60;
const CACHED = /^\/api\/images\/cache\/[0-9a-f-]{36}\.png$/;

/** Returns only URLs of the cache, whatever the text contains. */
export function readGallery(text: string | null): readonly KeptImage[] {
  return listOf(parseJson(text ?? '')).flatMap((entry) => {
    const url = textOf(at(entry, 'url'));
    return CACHED.test(url) ? [{ url, ...readSettings(entry) }] : [];
  });
}

/** Newest first. */
export function addToGallery(gallery: readonly KeptImage[], added: readonly KeptImage[]): readonly KeptImage[] {
  return [...added, ...gallery].slice(0, MAX_KEPT);
}

/** The paths of a response. Its URLs may name another host than the one the page was loaded from. */
export function cachedUrls(answer: unknown): readonly string[] {
  return listOf(at(answer, 'data')).flatMap((entry) => {
    const path = textOf(at(entry, 'url')).replace(/^https?:\/\/[^/]+(?=\/)/, '');
    const known = path.slice(Math.max(0, path.indexOf('/api/images/cache/'))).replace(/\?.*$/, '');
    return CACHED.test(known) ? [known] : [];
  });
}
