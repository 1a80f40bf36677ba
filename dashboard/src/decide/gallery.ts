/** The images that this browser remembers to have asked for: the service keeps the files in its cache, and the browser their addresses. Pure. */
import { at, listOf, parseJson, textOf } from './json.ts';

export interface KeptImage {
  /** Of this service, such as `/api/images/cache/….png`. */
  readonly url: string;
  readonly prompt: string;
}

const MOST_KEPT = 60;
const CACHED = /^\/api\/images\/cache\/[0-9a-f-]{36}\.png$/;

/** Whatever the text is, only addresses of the cache come out of it. */
export function readGallery(text: string | null): readonly KeptImage[] {
  return listOf(parseJson(text ?? '')).flatMap((entry) => {
    const kept = { url: textOf(at(entry, 'url')), prompt: textOf(at(entry, 'prompt')) };
    return CACHED.test(kept.url) ? [kept] : [];
  });
}

/** The newest first. */
export function addToGallery(gallery: readonly KeptImage[], added: readonly KeptImage[]): readonly KeptImage[] {
  return [...added, ...gallery].slice(0, MOST_KEPT);
}

/** The addresses of an answer, which may name another host than the page was opened under: the path is the same. */
export function cachedUrls(answer: unknown): readonly string[] {
  return listOf(at(answer, 'data')).flatMap((entry) => {
    const path = textOf(at(entry, 'url')).replace(/^https?:\/\/[^/]+(?=\/)/, '');
    const known = path.slice(Math.max(0, path.indexOf('/api/images/cache/')));
    return CACHED.test(known) ? [known] : [];
  });
}
