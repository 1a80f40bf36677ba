/** What the management API says about a model: a line of the list, and all that is known of one. */
import type { ModelDetail, ModelListing } from '../api/ports.ts';
import type { ModelFormat } from '../providers/provider.ts';
import { suggestModels } from '../models/decide/suggest-models.ts';
import { filesOf, storedBytes } from '../models/model-files.ts';
import type { DirectoryModelStore, ListedModel } from '../models/store.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import type { World } from './world.ts';

/** Pure. */
export function listModel({ id, entry, presence, ...own }: ListedModel, formats: readonly ModelFormat[]): ModelListing {
  const present = presence.kind === 'present';
  const facts = present ? presence.facts : undefined;
  const provider = entry?.provider ?? facts?.provider ?? own.provider ?? 'gguf';
  const format = formats.find(({ kind }) => kind === provider);
  const paths = entry?.files.map((file) => file.path) ?? [];
  const contents = facts?.contents ?? format?.contentsFrom(entry?.stated, paths);
  const traits = contents === undefined ? undefined : format?.describe?.(contents);
  return {
    id,
    kind: entry?.kind,
    provider,
    family: entry === undefined || entry.family === '' ? (facts?.family ?? own.family ?? 'unknown') : entry.family,
    present,
    sizeBytes: present ? presence.facts.sizeBytes : presence.kind === 'pullable' ? presence.sizeBytes : sizeOf(entry),
    memoryBytes: undefined,
    minMemoryBytes: entry?.minMemoryBytes,
    minVramBytes: entry?.minVramBytes,
    context: entry?.context ?? traits?.context,
    quantization: traits?.quantization,
    parameters: traits?.parameters,
    pooling: traits?.pooling,
    experts: traits?.experts,
    abilities: traits?.abilities,
    license: entry?.license,
    licenseUrl: entry?.licenseUrl,
    verified: entry?.verified,
    selectable: (entry?.selectable ?? true) && presence.kind !== 'missing',
    reason: presence.kind === 'missing' ? presence.message : undefined,
  };
}

function sizeOf(entry: ListedModel['entry']): number | undefined {
  const sizes = entry?.files.flatMap(({ from }) => (from.kind === 'url' ? [from.sizeBytes] : [])) ?? [];
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

/** Where the service looks models up. In a cluster, it has no files, and says of them what it has decided. */
export type DescribedStore = Pick<World, 'modelFiles' | 'clusterModels'>;

/** Fails for a name that nothing provides, with those that may have been meant. */
export async function describeModel(
  { modelFiles, clusterModels }: DescribedStore,
  id: ModelId,
  signal: AbortSignal,
): Promise<Result<ModelDetail>> {
  const store = clusterModels ?? modelFiles;
  const entry = await store.sources.known(id);
  const presence = (await store.observe([id], signal)).get(id);
  const isUnknown = presence === undefined || (entry === undefined && presence.kind === 'missing');
  if (isUnknown) return fail('stalled', 'ModelMissing', `There is no model "${id}"${suggestModels(id, modelFiles.catalogue.keys())}`);
  const present = presence.kind === 'present';
  // An own model of a provider has no file here.
  const isOwn = present && presence.facts.hostPath === id;
  const files = await (clusterModels === undefined && !isOwn
    ? storedFiles(modelFiles, id)
    : (entry?.files ?? []).map(({ path: file }) => ({ path: file, present })));
  const fromOf = new Map(entry?.files.map((file) => [file.path, file.from]));
  const described = files.map((file: StoredFile) => {
    const from = fromOf.get(file.path);
    const source = from?.kind === 'url' ? from : undefined;
    return {
      path: file.path,
      sizeBytes: source?.sizeBytes ?? file.storedBytes,
      sha256: source?.sha256 ?? file.sha256,
      url: source?.url,
      present: file.present,
    };
  });
  return ok({ ...listModel({ id, entry, presence }, modelFiles.formats), files: described, sources: entry?.sources ?? [] });
}

interface StoredFile {
  readonly path: string;
  readonly present: boolean;
  readonly storedBytes?: number | undefined;
  readonly sha256?: string | undefined;
}

async function storedFiles(store: DirectoryModelStore, id: ModelId): Promise<readonly StoredFile[]> {
  return await Promise.all(
    (await filesOf(store, id)).map(async (file) => {
      const bytes = await storedBytes(store.root, file);
      return { path: file.path, sha256: file.sha256, storedBytes: bytes, present: bytes !== undefined };
    }),
  );
}
