/**
 * The manifest of toolbox images: which image a provider runs in, pinned. The shipped one is `toolboxes/manifest.json`;
 * `<config>/toolboxes.toml` has the same shape and lies over it, and `svcctl toolbox build` writes it.
 */
import { z } from 'zod';
import { BACKENDS, PROVIDER_KIND_NAMES } from './provider-kinds.ts';

const SHA256 = /^sha256:[0-9a-f]{64}$/;

export const ToolboxImage = z
  .strictObject({
    image: z
      .string()
      .regex(/^[a-z0-9][a-zA-Z0-9._:/-]*$/, 'Write an image name without a digest: "localhost/svc-toolbox-gguf-cpu:v1"')
      .describe('Name and tag'),
    digest: z
      .string()
      .regex(SHA256, 'Write "sha256:" and 64 hexadecimal characters')
      .optional()
      .describe('Manifest digest: what a pull asks for'),
    id: z
      .string()
      .regex(SHA256, 'Write "sha256:" and 64 hexadecimal characters')
      .optional()
      .describe('Image id of one that was built here'),
  })
  .refine((entry) => entry.digest !== undefined || entry.image.startsWith('localhost/'), {
    message: 'Pin the image with "digest"; only an image built here (its name begins with "localhost/") may go without',
  });

export type ToolboxImage = z.output<typeof ToolboxImage>;

export const ToolboxManifest = z.partialRecord(z.enum(PROVIDER_KIND_NAMES), z.partialRecord(z.enum(BACKENDS), ToolboxImage));
export type ToolboxManifest = z.output<typeof ToolboxManifest>;
