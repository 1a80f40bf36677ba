/** Opens the cache of images: where translations put them, where clients fetch them, and what removes the old ones. */
import path from 'node:path';
import type { ImageSource } from '../api/ports.ts';
import { createImageCache } from '../files/image-cache.ts';
import type { KeepImage } from '../gateway/exchange-deps.ts';
import type { Settings } from '../schema/settings/settings.ts';

/** An image may outlive its time by this much on disk; nobody gets it then. */
const TIDY_MS = 3_600_000;

export function openImageCache(
  settings: Settings,
  wallNow: () => number,
  stopping: AbortSignal,
): { readonly keep: KeepImage; readonly source: ImageSource } {
  const { SVC_STATE_DIR: stateDir, SVC_IMAGE_CACHE_LIMIT: limitBytes, SVC_IMAGE_CACHE_AGE: maxAgeMs, SVC_PUBLIC_URL: publicUrl } = settings;
  const cache = createImageCache({ directory: path.join(stateDir, 'images'), limitBytes, maxAgeMs, wallNow });
  const base = publicUrl?.replace(/\/+$/, '') ?? '';
  void cache.tidy();
  const timer = setInterval(() => void cache.tidy(), TIDY_MS);
  timer.unref();
  stopping.addEventListener('abort', () => clearInterval(timer), { once: true });
  return {
    async keep(next, status) {
      if (status !== 200)
        return { ok: false, problem: `Read the log of the slot: the image server answered ${status} when it was asked for the image` };
      const kept = await cache.keep(next);
      return kept.ok ? { ok: true, url: `${base}/api/images/cache/${kept.id}.png` } : kept;
    },
    source: cache,
  };
}
