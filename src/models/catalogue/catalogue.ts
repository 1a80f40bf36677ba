/**
 * The model catalogue: models with a short id, and how to obtain their files. Its entries come from `catalogue.toml`, which is part of the program, and from
 * `models.toml` of the users; `catalogue-source.ts` reads both. The demo models are generated and always there.
 */
import type { ModelContents } from '../../providers/provider.ts';
import { PROVIDER_OF_MODEL_KIND, type ModelKind, type ProviderKind } from '../../schema/slot/provider-kinds.ts';

export interface CatalogueFile {
  /** Relative to the root of the store, without `..`. Of an archive: the directory in which its files are kept. */
  readonly path: string;
  readonly from: Download | { readonly kind: 'generated' };
  /** Set if the file is an archive, which is unpacked when it is fetched. It is the first file of its model then. */
  readonly archive?: Archive;
}

export type ArchiveFormat = 'tar.bz2';

export interface Archive {
  readonly format: ArchiveFormat;
  /** Of all its files together. Undefined if no source states it. */
  readonly unpackedBytes?: number | undefined;
}

export interface Download {
  readonly kind: 'url';
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** The repository, as `owner/repo`, if the file is on the Hugging Face Hub. */
  readonly repo?: string;
}

export interface CatalogueEntry {
  readonly id: string;
  /** What the model is for. Undefined for a model that was named otherwise. */
  readonly kind?: ModelKind;
  readonly provider: ProviderKind;
  readonly family: string;
  readonly files: readonly [CatalogueFile, ...CatalogueFile[]];
  /** The directory that the server loads, relative to the root of the store. Default: it loads the first file. */
  readonly directory?: string;
  readonly license: string;
  readonly licenseUrl: string;
  /** The Hub itself asks for its terms to be accepted before it sends the files. */
  readonly isGated?: boolean;
  readonly minVramBytes: number;
  /** What the model needs at least, of whatever memory its server uses. */
  readonly minMemoryBytes?: number;
  /** Longest context in tokens. Undefined if no source states it. */
  readonly context?: number;
  /**
   * What the files say, in the terms of the provider, for a gateway that cannot read them because only the pods of a cluster have them. Undefined: it reads them
   * at their source. Not needed for generated models.
   */
  readonly headerFacts?: ModelContents;
  /** What the catalogue states in the same terms. It completes what the files say. */
  readonly stated?: ModelContents;
  /** Whether the files were downloaded and compared with the entry. */
  readonly verified?: boolean;
  /** Pages where what the entry says can be checked. */
  readonly sources?: readonly string[];
  /** Whether the entry is from `models.toml`. */
  readonly isOwn?: boolean;
  /** Whether slots can use the model; false for models that this version cannot run yet. */
  readonly selectable: boolean;
  /** Why it is not selectable. Completes the sentence "Choose another model than X: …". */
  readonly reason?: string;
}

/** What is looked up in the catalogue. The answers may change between two calls, since users edit `models.toml`. */
export interface Catalogue {
  get(id: string): CatalogueEntry | undefined;
  has(id: string): boolean;
  keys(): Iterable<string>;
  values(): Iterable<CatalogueEntry>;
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

/** Returns the path of what the server loads, relative to the root of the store. */
export function loadedPath({ directory, files }: CatalogueEntry): string {
  return directory ?? files[0].path;
}

/** Returns the size of all files of an entry, or undefined if they are not downloaded. */
export function downloadBytes({ files }: Pick<CatalogueEntry, 'files'>): number | undefined {
  const sizes = files.flatMap(({ from }) => (from.kind === 'url' ? [from.sizeBytes] : []));
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

/** Says why a model cannot be used. Undefined if it can. */
export function whyNotSelectable({ id, selectable, reason }: CatalogueEntry): string | undefined {
  return selectable ? undefined : `Choose another model than "${id}": ${reason ?? 'this version cannot run it'}`;
}
