/** Toolbox images: build plans from the recipes of providers, and pins in the text of a manifest. Pure. */
import { z } from 'zod';
import type { ProviderRegistry } from '../../providers/provider.ts';
import { BACKENDS, PROVIDER_KIND_NAMES, type Backend, type ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { UNPUBLISHED, type ToolboxImage } from '../../schema/slot/toolbox-images.ts';

export interface BuildPlan {
  /** Folder in `toolboxes/` with the `Containerfile`. */
  readonly folder: string;
  /** Name and tag on this machine. */
  readonly image: string;
  readonly buildArguments: readonly string[];
  /** Manifest entries of the image: providers whose recipes name the same folder share it. */
  readonly entries: readonly (readonly [ProviderKind, Backend])[];
}

/** Returns a message if there is no image to build. Default backend: the first one of the recipe. */
export function planBuild(providers: ProviderRegistry, kind: ProviderKind, backend?: Backend): BuildPlan | string {
  const recipe = providers[kind]?.toolbox;
  const backends = recipe?.backends ?? [];
  const chosen = backend ?? backends[0];
  if (recipe === undefined || chosen === undefined || !backends.includes(chosen)) {
    const known = backends.map((each) => `"${each}"`).join(', ');
    return `No image for provider "${kind}" with backend "${backend}": ${known === '' ? 'the provider has none' : `use one of the backends ${known}`}`;
  }
  const { folder, byBackend } = recipe;
  const sharing = Object.values(providers).filter(({ toolbox }) => toolbox?.folder === folder && toolbox.backends.includes(chosen));
  return {
    folder,
    image: `localhost/svc-toolbox-${folder === chosen ? chosen : `${folder}-${chosen}`}:v1`,
    buildArguments: byBackend === true ? [`BACKEND=${chosen}`] : [],
    entries: sharing.map((provider) => [provider.kind, chosen] as const),
  };
}

/** Returns the arguments of podman. `own`: further build arguments, as `NAME=value`. */
export function buildCommand(
  { image, buildArguments }: BuildPlan,
  { own, context, idFile }: { readonly own: readonly string[]; readonly context: string; readonly idFile: string },
): readonly string[] {
  const given = [...buildArguments, ...own].flatMap((each) => ['--build-arg', each]);
  return ['build', '--iidfile', idFile, ...given, '--tag', image, context];
}

/** Returns the 64 digits of an image id, printed with or without its algorithm; undefined for other text. */
export const parseImageId = (text: string): string | undefined => /^(?:sha256:)?([0-9a-f]{64})$/.exec(text.trim())?.[1];

export interface PinnedImage {
  readonly image: string;
  /** `id`: built on this machine; `digest`: published. */
  readonly by: 'id' | 'digest';
  /** 64 hexadecimal digits. */
  readonly sha256: string;
}

/** Replaces or appends the entry of an image in a manifest, and keeps the rest of the text. */
export function withPin(text: string, kind: ProviderKind, backend: Backend, { image, by, sha256 }: PinnedImage): string {
  const entry = [`[${kind}.${backend}]`, `image = "${image}"`, `${by} = "sha256:${sha256}"`];
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  const header = new RegExp(`^\\s*\\[\\s*${kind}\\s*\\.\\s*${backend}\\s*\\]\\s*(?:#.*)?$`);
  const start = lines.findIndex((line) => header.test(line));
  if (start === -1) return `${[...lines, ...(lines.length === 0 ? [] : ['']), ...entry].join('\n')}\n`;
  const next = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line));
  const rest = next === -1 ? [] : lines.slice(next);
  return `${[...lines.slice(0, start), ...entry, ...(rest.length === 0 ? [] : ['', ...rest])].join('\n')}\n`;
}

/** Written by the release workflow for each pushed image. */
export const PublishedPin = z.strictObject({
  provider: z.enum(PROVIDER_KIND_NAMES),
  backend: z.enum(BACKENDS),
  image: z
    .string()
    .regex(/^(?!localhost\/)[a-z0-9][a-z0-9.-]*(?::\d+)?\/[a-z0-9._/-]+:v\d+$/, 'Not the name of an image in a registry with its tag'),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Not a digest; use "sha256:" followed by 64 hexadecimal digits'),
});
export type PublishedPin = z.output<typeof PublishedPin>;

/** Pins published images in the text of the shipped manifest. Throws for an image that this version does not build. */
export function withPublishedPins(text: string, pins: readonly PublishedPin[], providers: ProviderRegistry): string {
  return pins.reduce((before, { provider, backend, image, digest }) => {
    const plan = planBuild(providers, provider, backend);
    if (typeof plan === 'string') throw new Error(plan);
    const pinned = { image, by: 'digest', sha256: digest.slice('sha256:'.length) } as const;
    return plan.entries.reduce((all, [kind, each]) => withPin(all, kind, each, pinned), before);
  }, text);
}

export type PinState = 'unpublished' | 'absent' | 'verified' | 'different' | 'not pinned';

/** `found`: id of the image of podman with that name or digest; undefined if podman has none. */
export function judgeImage({ digest, id }: ToolboxImage, found: string | undefined): PinState {
  if (digest === UNPUBLISHED) return 'unpublished';
  if (found === undefined) return 'absent';
  if (id !== undefined) return parseImageId(id) === parseImageId(found) ? 'verified' : 'different';
  return digest === undefined ? 'not pinned' : 'verified';
}

/** Returns the first digits of the pin, for tables. */
export function pinText({ digest, id }: ToolboxImage): string {
  if (digest === UNPUBLISHED) return UNPUBLISHED;
  return (id ?? digest ?? '').slice(0, 'sha256:'.length + 12);
}
