/**
 * The schema of toolbox manifests, which name the pinned image of each provider and backend. `manifests/toolboxes.toml`
 * is shipped; `<config>/toolboxes.toml` has the same structure and overrides its entries.
 */
import { z } from 'zod';
import { optional } from '../pod/kube-fields.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from './provider-kinds.ts';

/** Digest placeholder for an image that no release has published. */
export const UNPUBLISHED = 'unpublished';

const Digest = z.string().regex(/^(?:sha256:[0-9a-f]{64}|unpublished)$/, 'Use "sha256:" followed by 64 hexadecimal digits');
const Sha256 = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Use "sha256:" followed by 64 hexadecimal digits');

export const ToolboxImage = z
  .strictObject({
    image: z
      .string()
      .regex(/^[a-z0-9][a-zA-Z0-9._:/-]*$/, 'Use an image name without a digest, such as "localhost/svc-toolbox-gguf-cpu:v1"')
      .describe('Name and tag of the image'),
    digest: Digest.optional().describe(
      'Digest of the image manifest, or "unpublished". Required unless the image was built on this machine',
    ),
    id: Sha256.optional().describe('Id of an image that was built on this machine'),
  })
  .refine((entry) => entry.digest !== undefined || entry.image.startsWith('localhost/'), {
    message: 'Set "digest": only images built on this machine (named "localhost/…") may omit it',
  });

export type ToolboxImage = z.output<typeof ToolboxImage>;

export const ToolboxManifest = z.partialRecord(z.enum(PROVIDER_KIND_NAMES), z.partialRecord(z.enum(BACKENDS), ToolboxImage));
export type ToolboxManifest = z.output<typeof ToolboxManifest>;

/** The build that one slot runs instead of the one of its provider. The API may not set it. */
export const SlotProgram = z.strictObject({
  image: optional(
    'Image of the containers or pods of the slot: "NAME@sha256:DIGEST", or one that was built on this machine, named "localhost/…"',
    z
      .string()
      .max(400)
      .regex(
        /^(?:localhost\/[a-zA-Z0-9._:/-]+|[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64})$/,
        'Write the name of an image with its digest, "NAME@sha256:…": only images named "localhost/…" may omit it',
      ),
  ),
  path: optional(
    'Absolute path of the program where slots run as processes',
    z
      .string()
      .max(4096)
      // eslint-disable-next-line no-control-regex -- NUL would end the path early
      .regex(/^\/[^\s\x00]+$/, 'Write an absolute path without spaces, such as "/opt/llama.cpp/bin/llama-server"'),
  ),
});
export type SlotProgram = z.output<typeof SlotProgram>;
