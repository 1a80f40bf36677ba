/**
 * The model catalogue: models with a short id and the source of their files. Entries come from the shipped
 * `catalogue.toml` and the user's `models.toml` (see `catalogue-source.ts`); the demo models are built in.
 */
import type { ModelContents } from '../../providers/provider.ts';
import { formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import { PROVIDER_OF_MODEL_KIND, type ModelKind, type ProviderKind } from '../../schema/slot/provider-kinds.ts';

export interface CatalogueFile {
  /** Relative to the store, without `..`. For an archive: the directory of its files. */
  readonly path: string;
  readonly from: Download | { readonly kind: 'generated' };
  /** Set for an archive, which is unpacked after the download. Only the first file of a model may be one. */
  readonly archive?: Archive;
}

export type ArchiveFormat = 'tar.bz2';

export interface Archive {
  readonly format: ArchiveFormat;
  /** Size of all its files. Undefined if no source states it. */
  readonly unpackedBytes?: number | undefined;
}

/** One content of a file. `sha256`: hexadecimal; empty if it was accepted before its download. */
export interface FileVersion {
  readonly sha256: string;
  readonly sizeBytes: number;
}

export interface Download extends FileVersion {
  readonly kind: 'url';
  readonly url: string;
  /** `owner/repo`, if the file is on the Hugging Face Hub. */
  readonly repo?: string;
  /** Set for a rolling source, whose file the publisher may replace: other versions that are accepted. */
  readonly others?: readonly FileVersion[] | undefined;
}

export const versionsOf = ({ sha256, sizeBytes, others = [] }: Omit<Download, 'kind' | 'url'>): readonly FileVersion[] => [
  { sha256: sha256.toLowerCase(), sizeBytes },
  ...others,
];

export interface CatalogueEntry {
  readonly id: string;
  /** Undefined for a model without an entry in the catalogue. */
  readonly kind?: ModelKind;
  readonly provider: ProviderKind;
  readonly family: string;
  readonly files: readonly [CatalogueFile, ...CatalogueFile[]];
  /** The directory that the server loads, relative to the store. Default: the server loads the first file. */
  readonly directory?: string;
  readonly license: string;
  readonly licenseUrl: string;
  /** The Hub requires its terms to be accepted. */
  readonly isGated?: boolean;
  readonly minVramBytes: number;
  /** Least memory, of whatever kind its server uses. */
  readonly minMemoryBytes?: number;
  /** Longest context in tokens. Undefined if no source states it. */
  readonly context?: number;
  /**
   * Contents in the terms of the provider, for a gateway that cannot read the files because only pods have them.
   * Undefined: it reads them at their source. Not needed for generated models.
   */
  readonly headerFacts?: ModelContents;
  /** Completes what the files say. */
  readonly stated?: ModelContents;
  /** The files were downloaded and compared with the entry. */
  readonly verified?: boolean;
  /** Pages that confirm the entry. */
  readonly sources?: readonly string[];
  /** The entry is from `models.toml`. */
  readonly isOwn?: boolean;
  /** False for models that this version cannot run. */
  readonly selectable: boolean;
  /** Why it is not selectable. Completes the sentence "The model X cannot be used: …". */
  readonly reason?: string;
}

/** Results may change between calls, because users edit `models.toml`. */
export interface Catalogue {
  get(id: string): CatalogueEntry | undefined;
  has(id: string): boolean;
  keys(): Iterable<string>;
  values(): Iterable<CatalogueEntry>;
  /** Mistakes in `models.toml` that concern this model; an earlier version of its entry may still be in force. */
  problemsOf?(id: string): readonly SpecProblem[];
}

const DEMO_FACTS = {
  family: 'demo',
  license: 'Apache-2.0',
  licenseUrl: 'https://www.apache.org/licenses/LICENSE-2.0',
  minVramBytes: 0,
  verified: true,
  selectable: true,
} as const;

const LISTENER_FILES = ['preprocess.onnx', 'encode.onnx', 'uncached_decode.onnx', 'cached_decode.onnx', 'tokens.txt'] as const;

/** The models that need no download: `toolboxes/demo` generates their files. */
export const DEMO_CATALOGUE: ReadonlyMap<string, CatalogueEntry> = new Map(
  [
    demoEntry('demo-fox', 'chat', ['demo-fox.gguf']),
    demoEntry('demo-owl', 'chat', ['demo-owl.gguf']),
    demoEntry('demo-clock', 'chat', ['demo-clock.gguf']),
    demoEntry('demo-embed', 'embed', ['demo-embed.gguf']),
    demoEntry('demo-listener', 'transcription', LISTENER_FILES),
    demoEntry('demo-speaker', 'speech', ['model.onnx', 'tokens.txt']),
  ].map((entry) => [entry.id, entry]),
);

/** A model of several files is a directory with its id. */
function demoEntry(id: string, kind: ModelKind, [first, ...more]: readonly [string, ...string[]]): CatalogueEntry {
  const directory = more.length === 0 ? 'demo' : `demo/${id}`;
  const file = (name: string): CatalogueFile => ({ path: `${directory}/${name}`, from: { kind: 'generated' } });
  const files = [file(first), ...more.map(file)] as const;
  return { ...DEMO_FACTS, id, kind, provider: PROVIDER_OF_MODEL_KIND[kind], ...(more.length === 0 ? {} : { directory }), files };
}

/** Returns the file or directory that the server loads, relative to the store. */
export const loadedPath = ({ directory, files }: CatalogueEntry): string => directory ?? files[0].path;

/** Size of all files; undefined if they are not downloaded. */
export function downloadBytes({ files }: Pick<CatalogueEntry, 'files'>): number | undefined {
  const sizes = files.flatMap(({ from }) => (from.kind === 'url' ? [from.sizeBytes] : []));
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

export const explainMistakes = (id: string, problems: readonly SpecProblem[]): string =>
  `"models.toml" has a mistake that concerns "${id}": ${problems.map((problem) => formatProblem(problem)).join('; ')}`;

/** Undefined if the model can be used. */
export function whyNotSelectable({ id, selectable, reason }: CatalogueEntry): string | undefined {
  return selectable ? undefined : `The model "${id}" cannot be used: ${reason ?? 'this version cannot run it'}; choose another model`;
}
