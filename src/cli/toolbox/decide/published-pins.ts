/** Writes the digests of published images into the text of the shipped manifest. Pure. */
import { z } from 'zod';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../../../schema/slot/provider-kinds.ts';
import { planBuild } from './build-plan.ts';
import { withPin } from './pin-text.ts';

/** What the release workflow writes down for each image that it has pushed. */
export const PublishedPin = z.strictObject({
  provider: z.enum(PROVIDER_KIND_NAMES),
  backend: z.enum(BACKENDS),
  image: z
    .string()
    .regex(/^(?!localhost\/)[a-z0-9][a-z0-9.-]*(?::\d+)?\/[a-z0-9._/-]+:v\d+$/, 'Use the name of an image in a registry, with its tag'),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Use "sha256:" followed by 64 hexadecimal digits'),
});
export type PublishedPin = z.output<typeof PublishedPin>;

/** An image that several providers share is pinned for each of them. Throws if this version does not build such an image. */
export function withPublishedPins(text: string, pins: readonly PublishedPin[]): string {
  return pins.reduce((before, { provider, backend, image, digest }) => {
    const plan = planBuild(provider, backend);
    if (typeof plan === 'string') throw new Error(plan);
    const pinned = { image, by: 'digest', sha256: digest.slice('sha256:'.length) } as const;
    return plan.entries.reduce((all, [kind, each]) => withPin(all, kind, each, pinned), before);
  }, text);
}
