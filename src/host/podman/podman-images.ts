/** Reads images through podman's API and caches them until an event or action may have changed them. */
import { z } from 'zod';
import type { ImageFact, ImageReference } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { LIBPOD, type PodmanApi } from './podman-api.ts';

const Image = z.object({ Id: z.string().min(1), Config: z.object({ Env: z.array(z.string()).nullish() }).nullish() });

/** `isFresh` decides whether what was read at that time (of `performance.now()`) may still be used. */
export function createPodmanImages(api: PodmanApi, isFresh: (at: number) => boolean) {
  let cache = new Map<string, { readonly at: number; readonly fact: ImageFact }>();
  const envs = new Map<string, readonly string[]>();
  const inspect = async (name: string, signal: AbortSignal) =>
    await api.call('GET', `${LIBPOD}/images/${encodeURIComponent(name)}/json`, { signal });

  /** An image that was built here is identified by its id, whatever its name refers to by now. */
  const read = async ({ reference, imageId }: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> => {
    const answer = await inspect(reference.startsWith('localhost/') ? (imageId ?? reference) : reference, signal);
    if (!answer.ok) return answer;
    if (answer.value.status === 404) return ok({ reference, present: false });
    const parsed = Image.safeParse(answer.value.body);
    if (parsed.success) return ok({ reference, present: true, imageId: `sha256:${parsed.data.Id.replace(/^sha256:/, '')}` });
    return fail('retry', 'RuntimeRefused', `Podman could not inspect the image "${reference}": ${answer.value.error || 'unknown answer'}`);
  };

  return {
    async observe(image: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> {
      const key = `${image.reference} ${image.imageId ?? ''}`;
      const cached = cache.get(key);
      if (cached !== undefined && isFresh(cached.at)) return ok(cached.fact);
      // `forget()` replaces the cache, so that a read that began earlier does not fill the new one.
      const current = cache;
      const at = performance.now();
      const fact = await read(image, signal);
      if (fact.ok) current.set(key, { at, fact: fact.value });
      return fact;
    },
    /** Returns the image's environment as `NAME=value`; undefined if the image cannot be read. */
    async env(id: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
      const known = envs.get(id);
      if (known !== undefined) return known;
      const answer = await inspect(id, signal);
      const image = answer.ok ? Image.safeParse(answer.value.body).data : undefined;
      if (image === undefined) return undefined;
      const env = image.Config?.Env ?? [];
      envs.set(id, env);
      return env;
    },
    forget(): void {
      cache = new Map();
    },
  };
}
