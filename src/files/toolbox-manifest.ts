/**
 * Which toolbox image a provider runs in: the shipped manifest with the machine's own `toolboxes.toml` laid over it, entry by entry. Of an own file with a
 * problem the last good text stays in force, after a restart too: else one typo would start every slot anew in another image.
 */
import { readFile, rm } from 'node:fs/promises';
import { parse, TomlError } from 'smol-toml';
import type { ImageReference } from '../reconciler/ports.ts';
import type { Backend, ProviderKind } from '../schema/provider-kinds.ts';
import { checkDocument, formatProblem, type SpecProblem } from '../schema/spec-problem.ts';
import { ToolboxManifest, type ToolboxImage } from '../schema/toolbox-images.ts';
import { findPositions } from './toml/decide/toml-positions.ts';
import { isSameValue } from '../schema/same-value.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { writeFileAtomically } from './write-file.ts';

export interface ToolboxImages {
  /** Undefined: there is no image of this provider for this backend. */
  find(kind: ProviderKind, backend: Backend): ImageReference | undefined;
  readonly manifest: ToolboxManifest;
  /** Of the files as they are now. */
  readonly problems: readonly SpecProblem[];
}

export interface ToolboxManifestOptions {
  /** `toolboxes/manifest.json`. */
  readonly shipped: string;
  /** `<config>/toolboxes.toml`; it need not exist. */
  readonly local: string;
  /** Where the last good text is kept, as JSON; unset: in memory only. */
  readonly keepIn?: string;
  readonly log: SourceLog;
}

export interface ToolboxSource {
  /** Reads the files anew; cheap enough for each wake. Each problem is said once in the log. */
  read(): Promise<ToolboxImages>;
}

const STAYS = 'the last good text stays in force';

export function createToolboxSource({ shipped, local, keepIn, log }: ToolboxManifestOptions): ToolboxSource {
  let lastGood: ToolboxManifest | undefined;
  let said = '';

  const keep = async (own: ToolboxManifest | undefined): Promise<void> => {
    if (lastGood !== undefined && isSameValue(own ?? {}, lastGood)) return;
    lastGood = own ?? {};
    if (keepIn === undefined) return;
    try {
      if (own === undefined) await rm(keepIn, { force: true });
      else await writeFileAtomically(keepIn, `${JSON.stringify(own, undefined, 2)}\n`, { mode: 0o600 });
    } catch (error) {
      log.warn({ error: messageOf(error) }, `Keeping the last good "${local}" in "${keepIn}" failed`);
    }
  };

  const say = (problems: readonly SpecProblem[]): void => {
    const text = problems.map((problem) => formatProblem(problem)).join('; ');
    if (text !== said && text !== '') log.warn({}, text);
    said = text;
  };

  return {
    async read() {
      const base = await readOne(shipped, parseJson);
      const own = await readOne(local, parse);
      const ownProblems = (own?.problems ?? []).map((problem) => ({ ...problem, message: `${problem.message}; ${STAYS}` }));
      if (ownProblems.length === 0) await keep(own?.manifest);
      else lastGood ??= (keepIn === undefined ? undefined : await readOne(keepIn, parseJson))?.manifest ?? {};
      const missing = 'Restore this file: the shipped manifest of toolbox images is missing';
      const problems = [...(base?.problems ?? [{ path: [], file: shipped, message: missing }]), ...ownProblems];
      say(problems);
      return imagesOf(overlay(base?.manifest ?? {}, lastGood ?? {}), problems);
    },
  };
}

/** What is wrong with a machine's own file; undefined: there is none. */
export async function checkToolboxFile(local: string): Promise<readonly SpecProblem[] | undefined> {
  return (await readOne(local, parse))?.problems;
}

function imagesOf(manifest: ToolboxManifest, problems: readonly SpecProblem[]): ToolboxImages {
  return {
    manifest,
    problems,
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
  const merged = [...kinds].map((kind) => [kind, { ...entriesOf(base, kind), ...entriesOf(own, kind) }]);
  return ToolboxManifest.parse(Object.fromEntries(merged));
}

function entriesOf(manifest: ToolboxManifest, kind: string): object {
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
    const checked = checkDocument(ToolboxManifest, read(text), 'snake_case');
    if (checked.ok) return { manifest: checked.value, problems: [] };
    const positionOfPath = file.endsWith('.toml') ? findPositions(text) : () => ({});
    return { manifest: {}, problems: checked.problems.map((problem) => ({ ...problem, file, ...positionOfPath(problem.path) })) };
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
