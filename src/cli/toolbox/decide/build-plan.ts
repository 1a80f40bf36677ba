/** How a toolbox image is built on this machine, and what is written down about it. Pure. */
import type { Backend, ProviderKind } from '../../../schema/slot/provider-kinds.ts';

export interface BuildPlan {
  /** Of the folder in `toolboxes/` with its `Containerfile`. */
  readonly folder: string;
  /** Name and tag on this machine. */
  readonly image: string;
  readonly buildArguments: readonly string[];
  /** The entries that have this image. */
  readonly entries: readonly (readonly [ProviderKind, Backend])[];
}

interface Recipe {
  readonly folder: string;
  readonly backends: readonly Backend[];
  /** Whether the image differs by backend. */
  readonly byBackend?: true;
  /** Others that run in the same image. */
  readonly shares?: readonly ProviderKind[];
}

const RECIPES: Readonly<Record<ProviderKind, Recipe>> = {
  gguf: { folder: 'gguf', backends: ['vulkan', 'rocm', 'cuda', 'cpu'], byBackend: true },
  npu: { folder: 'npu', backends: ['npu'] },
  stt: { folder: 'speech', backends: ['cpu'], shares: ['stt', 'tts'] },
  tts: { folder: 'speech', backends: ['cpu'], shares: ['stt', 'tts'] },
  image: { folder: 'image', backends: ['rocm'] },
};

/** Returns a message if there is no image to build. `backend` undefined: the first one. */
export function planBuild(provider: ProviderKind, backend?: Backend): BuildPlan | string {
  const recipe = RECIPES[provider];
  const chosen = backend ?? recipe.backends[0];
  if (chosen === undefined || !recipe.backends.includes(chosen)) {
    const known = recipe.backends.map((each) => `"${each}"`).join(', ');
    return `Use one of the backends ${known}: this version has no image for provider "${provider}" with backend "${backend}"`;
  }
  return {
    folder: recipe.folder,
    image: `localhost/svc-toolbox-${recipe.folder === chosen ? chosen : `${recipe.folder}-${chosen}`}:v1`,
    buildArguments: recipe.byBackend === true ? [`BACKEND=${chosen}`] : [],
    entries: (recipe.shares ?? [provider]).map((kind) => [kind, chosen] as const),
  };
}

/** The arguments of podman. `own`: further arguments of the Containerfile, as `NAME=value`. */
export function buildCommand(
  { image, buildArguments }: BuildPlan,
  { own, context, idFile }: { readonly own: readonly string[]; readonly context: string; readonly idFile: string },
): readonly string[] {
  const given = [...buildArguments, ...own].flatMap((each) => ['--build-arg', each]);
  return ['build', '--iidfile', idFile, ...given, '--tag', image, context];
}

/** Returns the 64 digits of an id, which podman prints with or without its algorithm; undefined if it is none. */
export function parseImageId(text: string): string | undefined {
  return /^(?:sha256:)?([0-9a-f]{64})$/.exec(text.trim())?.[1];
}
