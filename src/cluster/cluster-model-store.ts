/**
 * The models of a cluster, as the gateway sees them. The files are in the pods: each pod fetches or finds its own and reports when it cannot, so no model is
 * ever missing here. The facts about a model must not change when its file appears, or its slot would be swapped for nothing. They come from the catalogue;
 * for other models from a store that is mounted here; otherwise only the name is known.
 */
import path from 'node:path';
import type { ModelFacts } from '../providers/provider.ts';
import type { ModelPresence, ModelStore } from '../reconciler/ports.ts';
import { fail } from '../schema/failure.ts';
import type { ModelId } from '../schema/names.ts';
import { DEMO_CATALOGUE, downloadBytes, whyNotSelectable, type Catalogue, type CatalogueEntry } from '../models/catalogue.ts';
import { parseGgufHeader } from '../models/decide/parse-gguf-header.ts';
import { parseHubName } from '../models/decide/parse-model-name.ts';
import { isProjector, modelFacts } from '../models/decide/model-facts.ts';
import { encodeDemoModel, type DemoModelId } from '../models/demo/demo-models.ts';
import type { DirectoryModelStore } from '../models/store.ts';

const NOT_IN_CLUSTERS =
  'Name a model of the catalogue, or a file in the model store: in a cluster, models are not fetched from the Hugging Face Hub by name yet';

export interface ClusterModelStoreOptions {
  /** The gateway's own store; its directory may be empty. */
  readonly store: DirectoryModelStore;
  readonly catalogue?: Catalogue;
}

export function createClusterModelStore({ store, catalogue = DEMO_CATALOGUE }: ClusterModelStoreOptions): ModelStore {
  const { root } = store;
  const cache = new WeakMap<CatalogueEntry, ModelFacts>();

  function catalogueFacts(id: ModelId): ModelFacts | undefined {
    const entry = catalogue.get(id);
    if (entry === undefined) return undefined;
    const facts = cache.get(entry) ?? factsOfEntry(root, id, entry);
    cache.set(entry, facts);
    return facts;
  }

  return {
    root,
    async observe(ids, signal) {
      const own = ids.filter((id) => !catalogue.has(id));
      const mounted = own.length === 0 ? new Map() : await store.observe(own, signal);
      return new Map(
        ids.map((id): readonly [ModelId, ModelPresence] => {
          if (parseHubName(id).kind !== 'other') return [id, { kind: 'missing', message: NOT_IN_CLUSTERS }];
          const entry = catalogue.get(id);
          const refusal = entry === undefined ? undefined : whyNotSelectable(entry);
          if (refusal !== undefined) return [id, { kind: 'missing', message: refusal }];
          const presence = mounted.get(id);
          const found = presence?.kind === 'present' ? presence.facts : undefined;
          return [id, { kind: 'present', facts: catalogueFacts(id) ?? found ?? { id, hostPath: path.join(root, id), sizeBytes: 0 } }];
        }),
      );
    },
    async pull(id) {
      return fail('stalled', 'PulledByPods', `Set the model "${id}" in a slot: in a cluster, the pods of a slot fetch its model`);
    },
    changes: (wake, signal) => store.changes(wake, signal),
  };
}

function factsOfEntry(root: string, id: ModelId, entry: CatalogueEntry): ModelFacts {
  const [first] = entry.files;
  const hostPath = path.join(root, first.path);
  if (first.from.kind === 'generated') return factsOfGenerated(id, hostPath, first.from.model);
  const sizeBytes = downloadBytes(entry) ?? 0;
  const projector = entry.files.find((file) => /mmproj.*\.gguf$/i.test(path.basename(file.path)));
  return {
    ...entry.headerFacts,
    id,
    hostPath,
    sizeBytes,
    ...(projector === undefined ? {} : { projectorPath: path.join(root, projector.path) }),
  };
}

/** The same facts as a reader of the file would find. */
function factsOfGenerated(id: ModelId, hostPath: string, model: DemoModelId): ModelFacts {
  const bytes = encodeDemoModel(model);
  const read = parseGgufHeader(bytes);
  if (read.kind !== 'header' || isProjector(read.header)) throw new Error(`The generated model "${model}" has no readable header`);
  return modelFacts({ id, hostPath, headers: [read.header], sizeBytes: bytes.length, projectorPath: undefined });
}
