/** The model catalogue: models that the project knows by a short id, and how their files come to be. */
import { DEMO_MODEL_IDS, demoModelPath, type DemoModelId } from './demo/demo-models.ts';
import type { ModelFacts } from '../providers/provider.ts';
import type { ProviderKind } from '../schema/provider-kinds.ts';

export interface CatalogueFile {
  /** Below the store's root; never absolute, never with `..`. */
  readonly path: string;
  readonly from: { readonly kind: 'url'; readonly url: string } | { readonly kind: 'generated'; readonly model: DemoModelId };
  /** Hexadecimal; a download without a hash is not accepted. */
  readonly sha256?: string;
  readonly sizeBytes?: number;
}

export interface CatalogueEntry {
  readonly id: string;
  readonly provider: ProviderKind;
  readonly family: string;
  readonly description: string;
  /** The first one is what the server is given. */
  readonly files: readonly [CatalogueFile, ...CatalogueFile[]];
  readonly license: string;
  readonly licenseUrl: string;
  readonly minVramBytes: number;
  /**
   * What the header of a GGUF download says, for those who decide without the file: the gateway of a cluster, where pods have the models.
   * Needless for what is generated.
   */
  readonly headerFacts?: Omit<ModelFacts, 'id' | 'hostPath' | 'sizeBytes' | 'projectorPath'>;
  /** What the slot pickers show; false for what the project's workflows cannot drive yet. */
  readonly selectable: boolean;
}

export type Catalogue = ReadonlyMap<string, CatalogueEntry>;

const DEMO_DESCRIPTIONS: Readonly<Record<DemoModelId, string>> = {
  'demo-fox': 'A demonstration without trained weights: answers everything with one sentence about a fox',
  'demo-owl': 'A demonstration without trained weights: answers everything with one sentence about an owl',
  'demo-clock': 'A demonstration without trained weights: says "tick tock" until it is stopped',
  'demo-embed': 'A demonstration without trained weights: embeddings made from a table of word directions',
};

export const CATALOGUE: Catalogue = new Map(DEMO_MODEL_IDS.map((id) => [id, demoEntry(id)]));

function demoEntry(id: DemoModelId): CatalogueEntry {
  return {
    id,
    provider: 'gguf',
    family: 'demo',
    description: DEMO_DESCRIPTIONS[id],
    files: [{ path: demoModelPath(id), from: { kind: 'generated', model: id } }],
    license: 'Apache-2.0',
    licenseUrl: 'https://www.apache.org/licenses/LICENSE-2.0',
    minVramBytes: 0,
    selectable: true,
  };
}
