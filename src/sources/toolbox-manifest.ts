/** Which toolbox image a provider runs in: the shipped manifest with the machine's own `toolboxes.toml` laid over it, entry by entry. */
import { readFile } from 'node:fs/promises';
import { parse, TomlError } from 'smol-toml';
import type { ImageReference } from '../reconciler/ports.ts';
import type { Backend, ProviderKind } from '../spec/provider-kinds.ts';
import type { SpecProblem } from '../spec/slot-spec.ts';
import { ToolboxManifest, type ToolboxImage } from '../spec/toolbox-images.ts';
import { findPositions } from './decide/toml-positions.ts';
import { codeOf, messageOf } from './source-log.ts';

export interface ToolboxImages {
  /** Undefined: there is no image of this provider for this backend. */
  find(kind: ProviderKind, backend: Backend): ImageReference | undefined;
  readonly manifest: ToolboxManifest;
  /** A file with a problem is left out as a whole. */
  readonly problems: readonly SpecProblem[];
}

export interface ToolboxManifestOptions {
  /** `toolboxes/manifest.json`. */
  readonly shipped: string;
  /** `<config>/toolboxes.toml`; it need not exist. */
  readonly local: string;
}

/** Reads both files anew; cheap enough for each wake. */
export async function readToolboxManifest({ shipped, local }: ToolboxManifestOptions): Promise<ToolboxImages> {
  const base = await readOne(shipped, parseJson);
  const own = await readOne(local, parse);
  const missing =
    base === undefined
      ? [{ path: [], file: shipped, message: 'Restore this file: the shipped manifest of toolbox images is missing' }]
      : [];
  const manifest = overlay(base?.manifest ?? {}, own?.manifest ?? {});
  return {
    manifest,
    problems: [...missing, ...(base?.problems ?? []), ...(own?.problems ?? [])],
    find(kind, backend) {
      const image = manifest[kind]?.[backend];
      return image === undefined ? undefined : referenceOf(image);
    },
  };
}

/** A digest pins what is pulled; an image built here is known by its id. */
function referenceOf({ image, digest, id }: ToolboxImage): ImageReference {
  const reference = digest === undefined ? image : `${withoutTag(image)}@${digest}`;
  return id === undefined ? { reference } : { reference, imageId: id };
}

/** A name with both tag and digest is refused by some engines; the digest alone decides. */
function withoutTag(image: string): string {
  const colon = image.lastIndexOf(':');
  return colon > image.lastIndexOf('/') ? image.slice(0, colon) : image;
}

function overlay(base: ToolboxManifest, own: ToolboxManifest): ToolboxManifest {
  const kinds = new Set([...Object.keys(base), ...Object.keys(own)]);
  const merged = [...kinds].map((kind) => [kind, { ...imagesOf(base, kind), ...imagesOf(own, kind) }]);
  return ToolboxManifest.parse(Object.fromEntries(merged));
}

function imagesOf(manifest: ToolboxManifest, kind: string): object {
  return Object.entries(manifest).find(([name]) => name === kind)?.[1] ?? {};
}

interface OneManifest {
  readonly manifest: ToolboxManifest;
  readonly problems: readonly SpecProblem[];
}

/** Undefined: there is no such file. */
async function readOne(file: string, read: (text: string) => unknown): Promise<OneManifest | undefined> {
  let text = '';
  try {
    text = await readFile(file, 'utf8');
    const parsed = ToolboxManifest.safeParse(read(text));
    if (parsed.success) return { manifest: parsed.data, problems: [] };
    const positionOfPath = file.endsWith('.toml') ? findPositions(text) : () => ({});
    const problems = parsed.error.issues.map((issue) => {
      const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
      return { path, file, message: issue.message, ...positionOfPath(path) };
    });
    return { manifest: {}, problems };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    const place = error instanceof TomlError ? { line: error.line, column: error.column } : {};
    const reason = messageOf(error).split('\n')[0] ?? '';
    return { manifest: {}, problems: [{ path: [], file, message: `Correct this file: ${reason}`, ...place }] };
  }
}

function parseJson(text: string): unknown {
  return JSON.parse(text);
}
