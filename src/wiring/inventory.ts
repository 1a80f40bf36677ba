/** Lists providers, models and the pods of a cluster for the management API, and the progress of the installation. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Manage, ProviderListing, ModelDetail, ModelListing } from '../api/ports.ts';
import { describeAvailability, type RunsIn } from '../providers/decide/rank-backends.ts';
import type { Provider, ModelFormat } from '../providers/provider.ts';
import type { Board } from '../reconciler/board.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { kindFacts, PROVIDER_KIND_NAMES, type Backend, type ProviderKind } from '../schema/slot/provider-kinds.ts';
import { imagesHere } from './own-models.ts';
import type { ServiceOptions, World } from './world.ts';
import { downloadBytes } from '../models/catalogue/catalogue.ts';
import { suggestModels } from '../models/decide/parse-model-name.ts';
import { filesOf, storedBytes } from '../models/model-files.ts';
import type { DirectoryModelStore, ListedModel } from '../models/store.ts';
import type { ModelId } from '../schema/words/names.ts';

const PROBE_TIMEOUT_MS = 5000;

type Inventory = Pick<Manage, 'providers' | 'models' | 'model' | 'cluster' | 'installState' | 'completeInstall'>;

export function createInventory({ settings, providers }: ServiceOptions, world: World, board: Pick<Board, 'current'>): Inventory {
  const stateDir = settings.SVC_STATE_DIR;
  const sentinel = path.join(stateDir, 'install-complete');
  const listModels = async () => (world.clusterModels ?? world.modelFiles).list(new AbortController().signal);
  return {
    providers: async () => Promise.all(kindsOf(providers).map(async (kind) => listProvider(kind, providers[kind], { world, settings }))),
    models: async () => (await listModels()).map((model) => listModel(model, world.modelFiles.formats)),
    model: async (id) => describeModel(world, id, new AbortController().signal),
    cluster: () => world.listCluster?.(),
    async installState() {
      const listed = await listModels();
      const slots = [...board.current().slots.values()];
      const steps = [
        {
          id: 'model',
          done: listed.some((model) => model.presence.kind === 'present'),
          hint: 'Put a model into the store, or set one from the catalogue in a slot',
        },
        { id: 'slot', done: slots.length > 0, hint: 'Create a slot file, or run "svcctl slot create primary --model ID"' },
        {
          id: 'ready',
          done: slots.some((slot) => slot.admission.kind === 'open'),
          hint: 'Wait until a slot is ready; "svcctl explain SLOT" shows its progress',
        },
      ];
      return { complete: existsSync(sentinel), steps };
    },
    async completeInstall() {
      await mkdir(stateDir, { recursive: true });
      await writeFile(sentinel, '');
    },
  };
}

/** Built-in kinds, also those that this installation lacks, then engines by name. */
const kindsOf = (providers: ServiceOptions['providers']): readonly ProviderKind[] => [
  ...new Set<string>([...PROVIDER_KIND_NAMES, ...Object.keys(providers).toSorted()]),
];

interface Site extends Pick<ServiceOptions, 'settings'> {
  readonly world: World;
}

async function listProvider(kind: ProviderKind, provider: Provider | undefined, { world, settings }: Site): Promise<ProviderListing> {
  const facts = provider?.engine ?? kindFacts(kind);
  const { serves, backends: all } = facts;
  const [first] = all;
  const listing = { kind, serves, backends: all, defaultBackend: 'defaultBackend' in facts ? facts.defaultBackend : (first ?? 'cpu') };
  if (provider === undefined)
    return { ...listing, available: false, reason: 'This version does not include the provider yet', availability: [] };
  const { hardware } = await world.host.read(AbortSignal.timeout(PROBE_TIMEOUT_MS));
  const resources = world.runtime.traits.network === 'pods' ? settings.SVC_GPU_RESOURCES : undefined;
  const { backends, ...verdict } = describeAvailability(provider, await runsIn(provider, facts.backends, world), hardware, resources);
  return { ...listing, ...verdict, availability: backends };
}

async function runsIn({ kind, ownModels, runsElsewhere }: Provider, backends: readonly Backend[], world: World): Promise<RunsIn> {
  const { programs, toolboxes, runtime } = world;
  if (runsElsewhere === true && runtime.traits.network !== 'pods') return { kind: 'process', program: ok({ name: 'another machine' }) };
  if (programs === undefined) {
    const named = backends.flatMap((backend) => {
      const image = toolboxes().find(kind, backend);
      return image === undefined ? [] : [{ backend, image }];
    });
    const references = named.map(({ image }) => image);
    // The images on a cluster's nodes are not known here.
    const isAnywhere = ownModels === undefined || runtime.traits.kind !== 'podman';
    const here = isAnywhere ? references : await imagesHere(runtime, references, AbortSignal.timeout(PROBE_TIMEOUT_MS));
    const those = (areHere: boolean) => named.filter(({ image }) => here.includes(image) === areHere).map(({ backend }) => backend);
    return { kind: 'images', backends: those(true), absent: those(false) };
  }
  const program = programs().find((each) => each.kind === kind);
  const missing = fail('stalled', 'ProgramMissing', `This service cannot run the provider "${kind}" as a process`);
  return { kind: 'process', program: (await program?.describe()) ?? missing };
}

/** Pure. */
function listModel({ id, entry, presence, ...own }: ListedModel, formats: readonly ModelFormat[]): ModelListing {
  const present = presence.kind === 'present';
  const facts = present ? presence.facts : undefined;
  const provider = entry?.provider ?? facts?.provider ?? own.provider ?? 'gguf';
  const format = formats.find(({ kind }) => kind === provider);
  const paths = entry?.files.map((file) => file.path) ?? [];
  const contents = facts?.contents ?? format?.contentsFrom(entry?.stated, paths);
  const traits = contents === undefined ? undefined : format?.describe?.(contents);
  // An answer has only the fields of its schema.
  return {
    ...traits,
    ...entry,
    id,
    provider,
    family: entry === undefined || entry.family === '' ? (facts?.family ?? own.family ?? 'unknown') : entry.family,
    present,
    sizeBytes: present ? presence.facts.sizeBytes : presence.kind === 'pullable' ? presence.sizeBytes : entry && downloadBytes(entry),
    context: entry?.context ?? traits?.context,
    selectable: (entry?.selectable ?? true) && presence.kind !== 'missing',
    reason: presence.kind === 'missing' ? presence.message : undefined,
  };
}

/** Fails for a name that nothing provides, with those that may have been meant. */
async function describeModel({ modelFiles, clusterModels }: World, id: ModelId, signal: AbortSignal): Promise<Result<ModelDetail>> {
  // In a cluster, the service has no files and reports its decisions instead.
  const store = clusterModels ?? modelFiles;
  const entry = await store.sources.known(id);
  const presence = (await store.observe([id], signal)).get(id);
  if (presence === undefined) return fail('retry', 'ModelNotLookedUp', `Model "${id}" was not looked up yet; try again in a moment`);
  if (entry === undefined && presence.kind === 'missing') {
    const unknown = `There is no model "${id}"${suggestModels(id, modelFiles.catalogue.keys())}`;
    return fail('stalled', 'ModelMissing', presence.isAbsent === true ? unknown : presence.message);
  }
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
