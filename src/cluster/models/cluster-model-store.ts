/**
 * The models of a cluster. The files are in the pods; a pull only decides which files these are. The facts about a
 * model must not change when its file appears, or its slot would be swapped for nothing: they come from the record of
 * that decision, the catalogue, or a store that is mounted here; otherwise only the name is known.
 */
import path from 'node:path';
import type { ModelFacts, ModelFiles, ModelFormat } from '../../providers/provider.ts';
import type { ModelPresence, Wake } from '../../reconciler/ports.ts';
import { ok, type Result } from '../../schema/words/failure.ts';
import { ModelId } from '../../schema/words/names.ts';
import {
  DEMO_CATALOGUE,
  downloadBytes,
  loadedPath,
  whyNotSelectable,
  type Catalogue,
  type CatalogueEntry,
} from '../../models/catalogue/catalogue.ts';
import { parseHubName } from '../../models/decide/parse-model-name.ts';
import { isInWorkflowsMount } from '../../models/decide/workflows-mount.ts';
import { loadDemoToolbox } from '../../models/model-sources.ts';
import { createPulls } from '../../models/pulls.ts';
import type { DirectoryModelStore, ListedModel } from '../../models/store.ts';
import { createClusterSources, type ClusterSourcesOptions } from './cluster-sources.ts';
import { isOfEntry } from './decide/model-record.ts';

interface ClusterModelStoreOptions extends Pick<ClusterSourcesOptions, 'records' | 'hub' | 'fitsBytes'> {
  readonly store: Pick<DirectoryModelStore, 'root' | 'formats' | 'observe' | 'changes' | 'list'>;
  readonly catalogue?: Catalogue;
}

export type ClusterModelStore = ReturnType<typeof createClusterModelStore>;

const ANSWER_WITHIN_MS = 20_000;

export function createClusterModelStore(options: ClusterModelStoreOptions) {
  const { store, records, hub, catalogue = DEMO_CATALOGUE, fitsBytes } = options;
  const { root, formats } = store;
  const generated = new Map<ModelId, Promise<ModelFacts>>();
  const sources = createClusterSources({ records, hub, catalogue, formats, fitsBytes });
  const pulls = createPulls((id, _onProgress, signal) => sources.decide(id, signal));

  async function generatedFacts(id: ModelId, entry: CatalogueEntry): Promise<ModelFacts | undefined> {
    if (entry.files[0].from.kind !== 'generated') return undefined;
    const format = formats.find(({ kind }) => kind === entry.provider);
    const facts = generated.get(id) ?? factsOfGenerated(id, path.join(root, loadedPath(entry)), entry, format);
    generated.set(id, facts);
    return facts;
  }

  /** Undefined while the records are not known. */
  async function presenceOfRecord(id: ModelId, entry: CatalogueEntry | undefined): Promise<ModelPresence | undefined> {
    if (!records.isKnown()) return undefined;
    const record = records.read(id);
    const isCurrent = record !== undefined && (entry === undefined || isOfEntry(record, entry));
    if (isCurrent) return { kind: 'present', facts: record.facts };
    const known = entry ?? (await sources.known(id));
    const allowed = known === undefined ? ok(undefined) : await sources.checkLicense(known);
    return { kind: 'pullable', sizeBytes: known && downloadBytes(known), ...(allowed.ok ? {} : { refusal: allowed.failure.message }) };
  }

  /** A file of the user; this store is a view of it if it is mounted here. */
  function presenceOfOther(id: ModelId, mounted: ModelPresence | undefined): ModelPresence {
    if (mounted?.kind === 'present') return mounted;
    if (formats.some(({ mustBeRead }) => mustBeRead?.(path.basename(id)) === true)) return notRead(id, mounted);
    return { kind: 'present', facts: { id, hostPath: path.join(root, id) } };
  }

  async function observe(ids: readonly ModelId[], signal: AbortSignal): Promise<ReadonlyMap<ModelId, ModelPresence>> {
    const others = ids.filter((id) => !catalogue.has(id) && parseHubName(id).kind === 'other');
    const mounted = others.length === 0 ? new Map<ModelId, ModelPresence>() : await store.observe(others, signal);
    const presenceOf = async (id: ModelId): Promise<ModelPresence | undefined> => {
      const entry = catalogue.get(id);
      const refusal = entry === undefined ? undefined : whyNotSelectable(entry);
      if (refusal !== undefined) return { kind: 'missing', message: refusal };
      const facts = entry === undefined ? undefined : await generatedFacts(id, entry);
      if (facts !== undefined) return { kind: 'present', facts };
      const name = parseHubName(id);
      if (entry !== undefined || name.kind === 'hub') return presenceOfRecord(id, entry);
      return name.kind === 'invalid' ? { kind: 'missing', message: name.message } : presenceOfOther(id, mounted.get(id));
    };
    const found = await Promise.all(ids.map(async (id) => [id, await presenceOf(id)] as const));
    return new Map(found.flatMap(([id, presence]) => (presence === undefined ? [] : [[id, presence] as const])));
  }

  return {
    root,
    sources,
    pulls,
    observe,
    pull: pulls.join,
    changes(wake: Wake, signal: AbortSignal): void {
      store.changes(wake, signal);
      records.changes(wake, signal);
    },
    async list(signal: AbortSignal): Promise<readonly ListedModel[]> {
      const pins = records.list();
      const named = new Set([...catalogue.keys(), ...pins.map((pin) => pin.id)]);
      const files = new Set(pins.flatMap((pin) => pin.files.map((file) => file.path)));
      const mounted = (await store.list(signal)).filter(({ id }) => !named.has(id) && !files.has(id));
      const ids = [...named].flatMap((id) => ModelId.safeParse(id).data ?? []);
      const presences = await observe(ids, signal);
      const unknown: ModelPresence = { kind: 'pullable', sizeBytes: undefined };
      const listed = ids.map(async (id) => ({ id, entry: await sources.known(id), presence: presences.get(id) ?? unknown }));
      return [...(await Promise.all(listed)), ...mounted];
    },
    /** Fetched files stay in the pods. Resolves to whether there was something to forget. */
    async forget(id: ModelId): Promise<Result<boolean>> {
      const cancelled = pulls.cancel(id);
      if (records.read(id) === undefined) return ok(cancelled);
      const removed = await records.remove(id, AbortSignal.timeout(ANSWER_WITHIN_MS));
      return removed.ok ? ok(true) : removed;
    },
  };
}

/** A mounted file reports its own problem. */
function notRead(id: ModelId, mounted: ModelPresence | undefined): ModelPresence {
  if (mounted?.kind === 'missing' && !mounted.isAbsent) return mounted;
  const place = isInWorkflowsMount(id)
    ? `put "${path.basename(id)}" into the ConfigMap that "models.workflowsConfigMapName" of the chart names`
    : 'put it into the volume of the models that the gateway mounts ("models.claim" or "models.hostPath", with "models.mountInGateway")';
  return { kind: 'missing', message: `The gateway has to read "${id}", and cannot find it: ${place}` };
}

/** The same facts as a reader of the files would find. */
async function factsOfGenerated(
  id: ModelId,
  hostPath: string,
  { directory, files: listed }: CatalogueEntry,
  format: ModelFormat | undefined,
): Promise<ModelFacts> {
  const { encodeDemoFile } = await loadDemoToolbox();
  const generated = listed.filter(({ from }) => from.kind === 'generated');
  const contents = new Map(generated.map(({ path: file }) => [path.basename(file), encodeDemoFile(file)]));
  const bytesOf = (name: string): Uint8Array => contents.get(name) ?? new Uint8Array();
  const names = [...contents.keys()];
  const files: ModelFiles = {
    names: async () => names,
    sizeOf: async (name) => bytesOf(name).length,
    read: async (name, offset, length) => bytesOf(name).subarray(offset, offset + length),
  };
  const entry = { name: path.basename(hostPath), ...(directory === undefined ? {} : { names }) };
  const reading = await format?.read({ id, entry }, files);
  if (format === undefined || reading?.kind !== 'model') throw new Error(`The generated model "${id}" cannot be read`);
  return { id, hostPath, sizeBytes: reading.sizeBytes, provider: format.kind, contents: reading.contents, family: reading.family };
}
