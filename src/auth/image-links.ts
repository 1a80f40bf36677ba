/**
 * Links to cached images that work without a credential for an hour, because `data[0].url` is fetched by programs that
 * have none: browsers, chat pages, `curl`. Only for authentication; without it, every link works (ADR 0137).
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Clients fetch an image at once, or show it in a page that is open. */
const VALID_MS = 3_600_000;
const SIGNED = /^\/api\/images\/cache\/([0-9a-f-]{36})\.png\?expires=(\d{1,12})&signature=([\w-]{43})$/;

export type ImageLinks = ReturnType<typeof createImageLinks>;

/** A restart makes links invalid, since the key is in memory only. */
export function createImageLinks(wallNow: () => number, key: Buffer = randomBytes(32)) {
  const sign = (id: string, expires: number): string => createHmac('sha256', key).update(`${id} ${expires}`).digest('base64url');
  return {
    /** Query of the link. */
    queryOf(id: string): string {
      const expires = Math.floor((wallNow() + VALID_MS) / 1000);
      return `?expires=${expires}&signature=${sign(id, expires)}`;
    },
    /** `url`: as in the request line. */
    isValid(url: string | undefined): boolean {
      const [, id = '', expires = '', signature = ''] = SIGNED.exec(url ?? '') ?? [];
      if (id === '' || Number(expires) * 1000 < wallNow()) return false;
      return timingSafeEqual(Buffer.from(sign(id, Number(expires))), Buffer.from(signature));
    },
  };
}
