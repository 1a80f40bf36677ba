/**
 * The models of a cluster, as the gateway sees them. The files are in the pods: each pod fetches or finds its own and reports when it cannot, so no model is
 * ever missing here. The facts about a model must not change when its file appears, or its slot would be swapped for nothing. They come from the catalogue;
 * for other models from a store that is mounted here; otherwise only the name is known.
 */
import path from 'node:path';
import type { ModelFacts, ModelFiles, ModelFormat } from '../providers/provider.ts';
import type { ModelPresence, ModelStore } from '../reconciler/ports.ts';
import { fail } from '../schema/failure.ts';
import type { ModelId } from '../schema/names.ts';
import { CATALOGUE, downloadBytes, loadedPath, type Catalogue, type CatalogueEntry } from '../models/catalogue.ts';
import { parseHubName } from '../models/decide/parse-model-name.ts';
import { encodeDemoModel, type DemoModelId } from '../models/demo/demo-models.ts';
import type { DirectoryModelStore } from '../models/store.ts';

const NOT_IN_CLUSTERS =
  'Name a model of the catalogue, or a file in the model store: in a cluster, models are not fetched from the Hugging Face Hub by name yet';

export interface ClusterModelStoreOptions {
  /** The gateway's own store; its directory may be empty. */
  readonly store: DirectoryModelStore;
  readonly catalogue?: Catalogue;
}

export function createClusterModelStore({ store, catalogue = CATALOGUE }: ClusterModelStoreOptions): ModelStore {
  const { root, formats } = store;
  const cache = new Map<ModelId, Promise<ModelFacts>>();

  async function catalogueFacts(id: ModelId): Promise<ModelFacts | undefined> {
    const entry = catalogue.get(id);
    if (entry === undefined) return undefined;
    const format = formats.find(({ kind }) => kind === entry.provider);
    const facts = cache.get(id) ?? factsOfEntry(path.join(root, loadedPath(entry)), id, entry, format);
    cache.set(id, facts);
    return facts;
  }

  return {
    root,
    async observe(ids, signal) {
      const own = ids.filter((id) => !catalogue.has(id));
      const mounted = own.length === 0 ? new Map() : await store.observe(own, signal);
      const presenceOf = async (id: ModelId): Promise<ModelPresence> => {
        if (parseHubName(id).kind !== 'other') return { kind: 'missing', message: NOT_IN_CLUSTERS };
        const presence = mounted.get(id);
        const found = presence?.kind === 'present' ? presence.facts : undefined;
        const facts = (await catalogueFacts(id)) ?? found ?? { id, hostPath: path.join(root, id), sizeBytes: 0 };
        return { kind: 'present', facts };
      };
      return new Map(await Promise.all(ids.map(async (id) => [id, await presenceOf(id)] as const)));
    },
    async pull(id) {
      return fail('stalled', 'PulledByPods', `Set the model "${id}" in a slot: in a cluster, the pods of a slot fetch its model`);
    },
    changes: (wake, signal) => store.changes(wake, signal),
  };
}

async function factsOfEntry(hostPath: string, id: ModelId, entry: CatalogueEntry, format: ModelFormat | undefined): Promise<ModelFacts> {
  const [{ from }] = entry.files;
  if (from.kind === 'generated') return factsOfGenerated(id, hostPath, from.model, format);
  const files = entry.files.map((file) => file.path);
  const contents = format?.contentsFrom(entry.headerFacts, files);
  return { id, hostPath, sizeBytes: downloadBytes(entry) ?? 0, provider: entry.provider, ...(contents === undefined ? {} : { contents }) };
}

/** The same facts as a reader of the file would find. */
async function factsOfGenerated(id: ModelId, hostPath: string, model: DemoModelId, format: ModelFormat | undefined): Promise<ModelFacts> {
  const bytes = encodeDemoModel(model);
  const name = path.basename(hostPath);
  const files: ModelFiles = {
    names: async () => [name],
    sizeOf: async () => bytes.length,
    read: async (_name, offset, length) => bytes.subarray(offset, offset + length),
  };
  const reading = await format?.read({ id, entry: { name } }, files);
  if (format === undefined || reading?.kind !== 'model') throw new Error(`The generated model "${model}" cannot be read`);
  const { sizeBytes, contents, family } = reading;
  return { id, hostPath, sizeBytes, provider: format.kind, contents, family };
}
