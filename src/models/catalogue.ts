/** The model catalogue: models with a short id, and how to obtain their files. */
import { DEMO_MODEL_IDS, demoModelPath, type DemoModelId } from './demo/demo-models.ts';
import type { ModelContents } from '../providers/provider.ts';
import type { ProviderKind } from '../schema/provider-kinds.ts';

export interface CatalogueFile {
  /** Relative to the root of the store, without `..`. */
  readonly path: string;
  readonly from: Download | { readonly kind: 'generated'; readonly model: DemoModelId };
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
  /**
   * What the files say, in the terms of the provider, for a gateway that cannot read them because only the pods of a cluster have them.
   * Not needed for generated models.
   */
  readonly headerFacts?: ModelContents;
  /** Whether users can choose the model in lists; false for models that this version cannot run yet. */
  readonly selectable: boolean;
}

export type Catalogue = ReadonlyMap<string, CatalogueEntry>;

export const CATALOGUE: Catalogue = new Map(DEMO_MODEL_IDS.map((id) => [id, demoEntry(id)]));

/** Returns the path of what the server loads, relative to the root of the store. */
export function loadedPath({ directory, files }: CatalogueEntry): string {
  return directory ?? files[0].path;
}

/** Returns the size of all files of an entry, or undefined if they are not downloaded. */
export function downloadBytes({ files }: CatalogueEntry): number | undefined {
  const sizes = files.flatMap(({ from }) => (from.kind === 'url' ? [from.sizeBytes] : []));
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

function demoEntry(id: DemoModelId): CatalogueEntry {
  return {
    id,
    provider: 'gguf',
    family: 'demo',
    files: [{ path: demoModelPath(id), from: { kind: 'generated', model: id } }],
    license: 'Apache-2.0',
    licenseUrl: 'https://www.apache.org/licenses/LICENSE-2.0',
    minVramBytes: 0,
    selectable: true,
  };
}
