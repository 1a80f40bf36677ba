/**
 * Generated images: the events of a stream, and the gallery. The service caches the files; the browser keeps their
 * URLs. Pure.
 */
import { at, listOf, parseJson, textOf } from './untrusted.ts';

export interface Drawing {
  /** A `data:` URL; undefined before the first preview. */
  readonly preview: string | undefined;
  readonly done: readonly string[];
  readonly failure: string;
}

export const NOTHING_DRAWN: Drawing = { preview: undefined, done: [], failure: '' };

const FORMATS = ['png', 'jpeg', 'webp'];

/** `data` is that field of one event of `/v1/images/generations`. Unknown events change nothing. */
export function extendDrawing(drawing: Drawing, data: string): Drawing {
  const event = parseJson(data);
  const failure = textOf(at(at(event, 'error'), 'message'));
  if (failure !== '') return { ...drawing, failure };
  const bytes = textOf(at(event, 'b64_json'));
  if (bytes === '') return drawing;
  const format = FORMATS.find((name) => name === at(event, 'output_format')) ?? 'png';
  const url = `data:image/${format};base64,${bytes}`;
  if (textOf(at(event, 'type')).endsWith('.partial_image')) return { ...drawing, preview: url };
  return { ...drawing, preview: undefined, done: [...drawing.done, url] };
}

export interface KeptImage {
  /** Path on this service: `/api/images/cache/….png`. */
  readonly url: string;
  readonly prompt: string;
}

const MAX_KEPT = 60;
const CACHED = /^\/api\/images\/cache\/[0-9a-f-]{36}\.png$/;

/** Returns only URLs of the cache, whatever the text contains. */
export function readGallery(text: string | null): readonly KeptImage[] {
  return listOf(parseJson(text ?? '')).flatMap((entry) => {
    const kept = { url: textOf(at(entry, 'url')), prompt: textOf(at(entry, 'prompt')) };
    return CACHED.test(kept.url) ? [kept] : [];
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
