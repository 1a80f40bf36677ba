/**
 * Finds the toolbox image of a provider in the shipped manifest, merged with the user's `toolboxes.toml`. If that file
 * is invalid, its last good text stays in force, also after a restart; otherwise a typo would restart every slot with
 * another image.
 */
import { parse, TomlError } from 'smol-toml';
import type { ImageReference } from '../reconciler/ports.ts';
import { PROVIDER_KIND_NAMES, type Backend, type ProviderKind } from '../schema/slot/provider-kinds.ts';
import { checkDocument, formatProblem, type SpecProblem } from '../schema/slot/spec-problem.ts';
import { ToolboxManifest, UNPUBLISHED, type ToolboxImage } from '../schema/slot/toolbox-images.ts';
import { findPositions } from './toml/decide/parse-document.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { readTextFile } from './read-text-file.ts';
import { storeLastGood } from './write-file.ts';

export interface ToolboxImages {
  /** Undefined if the provider has no image for the backend. */
  find(kind: ProviderKind, backend: Backend): ImageReference | undefined;
  readonly manifest: ToolboxManifest;
  /** Problems of the present files. */
  readonly problems: readonly SpecProblem[];
}

export interface ToolboxManifestOptions {
  /** `manifests/toolboxes.toml`. */
  readonly shipped: string;
  /** `<config>/toolboxes.toml`; it need not exist. */
  readonly local: string;
  /** JSON file of the last good text; in memory only if unset. */
  readonly lastGoodFile?: string;
  readonly log: SourceLog;
}

export function createToolboxSource({ shipped, local, lastGoodFile, log }: ToolboxManifestOptions) {
  let lastGood: ToolboxManifest | undefined;
  let logged = '';

  const accept = async (own: ToolboxManifest | undefined): Promise<void> => {
    if (lastGood !== undefined && isSameValue(own ?? {}, lastGood)) return;
    lastGood = own ?? {};
    await storeLastGood(lastGoodFile, own, `"${local}"`, log);
  };

  const logProblems = (problems: readonly SpecProblem[]): void => {
    const text = problems.map((problem) => formatProblem(problem)).join('; ');
    if (text !== logged && text !== '') log.warn({}, text);
    logged = text;
  };

  return {
    /** Reads the files; cheap enough for each wake. Logs each problem once. */
    async read(): Promise<ToolboxImages> {
      const base = await readOne(shipped);
      const own = await readOne(local);
      const ownProblems = (own?.problems ?? []).map((problem) => ({
        ...problem,
        message: `${problem.message}; the last good text stays in force`,
      }));
      if (ownProblems.length === 0) await accept(own?.manifest);
      else lastGood ??= (lastGoodFile === undefined ? undefined : await readOne(lastGoodFile))?.manifest ?? {};
      const missing = 'The shipped manifest of toolbox images is missing; restore this file';
      const problems = [...(base?.problems ?? [{ path: [], file: shipped, message: missing }]), ...ownProblems];
      logProblems(problems);
      const manifest = merge(base?.manifest ?? {}, lastGood ?? {});
      return {
        manifest,
        problems,
        find(kind, backend) {
          const own = PROVIDER_KIND_NAMES.find((name) => name === kind);
          return referenceOf(own && manifest[own]?.[backend]);
        },
      };
    },
  };
}

/** Undefined if there is no such file. */
export async function checkToolboxFile(local: string): Promise<readonly SpecProblem[] | undefined> {
  return (await readOne(local))?.problems;
}

/** Undefined if the image was not published. A pulled image is identified by its digest, a local one by its id. */
export function referenceOf(found: ToolboxImage | undefined): ImageReference | undefined {
  if (found === undefined || found.digest === UNPUBLISHED) return undefined;
  const { image, digest, id } = found;
  const reference = digest === undefined ? image : `${withoutTag(image)}@${digest}`;
  return id === undefined ? { reference } : { reference, imageId: id };
}

/** Some engines refuse both tag and digest. */
function withoutTag(image: string): string {
  const colon = image.lastIndexOf(':');
  return colon > image.lastIndexOf('/') ? image.slice(0, colon) : image;
}

function merge(base: ToolboxManifest, own: ToolboxManifest): ToolboxManifest {
  const merged = { ...base };
  for (const kind of PROVIDER_KIND_NAMES) if (own[kind] !== undefined) merged[kind] = { ...base[kind], ...own[kind] };
  return merged;
}

/** Reads TOML or JSON, by the file's extension. Returns undefined if there is no such file. */
async function readOne(file: string): Promise<Pick<ToolboxImages, 'manifest' | 'problems'> | undefined> {
  const isToml = file.endsWith('.toml');
  const read = await readTextFile(file);
  if (read === undefined) return undefined;
  if (read.file.kind === 'unreadable') return { manifest: {}, problems: [{ ...read.file, path: [], file }] };
  const { text } = read.file;
  try {
    const document: unknown = isToml ? parse(text) : JSON.parse(text);
    const checked = checkDocument(ToolboxManifest, document, 'snake_case');
    if (checked.ok) return { manifest: checked.value, problems: [] };
    const positionOfPath = isToml ? findPositions(text) : () => ({});
    return { manifest: {}, problems: checked.problems.map((problem) => ({ ...problem, file, ...positionOfPath(problem.path) })) };
  } catch (error) {
    const position = error instanceof TomlError ? { line: error.line, column: error.column } : {};
    const reason = messageOf(error).split('\n')[0] ?? '';
    return { manifest: {}, problems: [{ path: [], file, message: `This file is not valid: ${reason}`, ...position }] };
  }
}
