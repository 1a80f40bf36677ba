/** The model store: a directory of model files, and the models that can be pulled into it. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { watch } from 'chokidar';
import { succeeds } from '../files/write-file.ts';
import { createKeyedLock, inTurns } from '../platform/semaphore.ts';
import type { ModelFormat, StoreEntry } from '../providers/provider.ts';
import type { ModelPresence, ModelStore } from '../reconciler/ports.ts';
import { defined } from '../schema/pod/kube-fields.ts';
import { fail } from '../schema/words/failure.ts';
import { ModelId } from '../schema/words/names.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';
import {
  DEMO_CATALOGUE,
  downloadBytes,
  explainMistakes,
  loadedPath,
  versionsOf,
  whyNotSelectable,
  type Catalogue,
  type CatalogueEntry,
} from './catalogue/catalogue.ts';
import { readFileList } from './archive/file-list.ts';
import { completeContents } from './decide/pin.ts';
import { parseHubName, suggestModels } from './decide/parse-model-name.ts';
import { readHubAccess } from './hub/hub-access.ts';
import { createModelSources, type ModelSources } from './model-sources.ts';
import { fetchModel, type FetchModel } from './download/fetch-model.ts';
import { createPulls, type Pulls } from './pulls.ts';
import { createModelReader } from './read-model.ts';

export interface ListedModel {
  readonly id: ModelId;
  readonly entry: CatalogueEntry | undefined;
  readonly presence: ModelPresence;
  readonly provider?: ProviderKind;
  readonly family?: string;
}

export interface OwnModelSource {
  find(id: ModelId): Promise<ModelPresence | undefined>;
  list(): Promise<readonly ListedModel[]>;
  names(): Promise<readonly ModelId[]>;
}

export interface DirectoryModelStore extends ModelStore {
  readonly catalogue: Catalogue;
  readonly formats: readonly ModelFormat[];
  readonly sources: ModelSources;
  readonly pulls: Pulls;
  list(signal: AbortSignal): Promise<readonly ListedModel[]>;
}

export interface ModelStoreOptions
  extends
    Pick<FetchModel, 'root' | 'formats' | 'mounts' | 'catalogue' | 'sources' | 'limits' | 'pace'>,
    Partial<Pick<FetchModel, 'writer'>> {
  readonly own?: OwnModelSource;
}

/** Deeper directories are neither watched nor listed; a slot may name a model at any depth. */
const DEPTH = 5;
const MAX_LISTED = 2000;
/** A file being copied changes many times a second; one pass is enough. */
const WAKE_WITHIN_MS = 100;

export function createModelStore(options: ModelStoreOptions): DirectoryModelStore {
  const { root, formats, mounts = [], writer = 'svc', limits, pace, own } = options;
  const catalogue: Catalogue = options.catalogue ?? DEMO_CATALOGUE;
  const sources = options.sources ?? createModelSources({ root, hub: readHubAccess({}), catalogue });
  const reader = createModelReader(root, formats, mounts);
  const lock = createKeyedLock();
  const pulls = createPulls((id, onProgress, signal) =>
    fetchModel({ root, formats, mounts, id, catalogue, sources, writer, lock, onProgress, ...defined({ limits, pace }) }, signal),
  );

  async function presence(id: ModelId): Promise<ModelPresence> {
    const entry = await sources.known(id);
    if (entry === undefined) return presenceOfOther(id);
    const refusal = whyNotSelectable(entry);
    if (refusal !== undefined) return { kind: 'missing', message: refusal };
    if (!(await isUnpacked(root, entry))) return pullable(entry);
    const read = await reader.read(id, loadedPath(entry), entry.provider);
    if (read.kind === 'unusable') return { kind: 'missing', message: read.message };
    const others = await Promise.all(entry.files.slice(1).map(async ({ path: file }) => await succeeds(stat(path.join(root, file)))));
    if (read.kind === 'absent' || others.includes(false)) return pullable(entry);
    const isWhole = entry.files.length === 1 || entry.files[0].archive !== undefined;
    const sizeBytes = isWhole ? read.facts.sizeBytes : (downloadBytes(entry) ?? read.facts.sizeBytes);
    const contents = completeContents(read.facts.contents, entry.stated);
    return { kind: 'present', facts: { ...read.facts, ...(contents === undefined ? {} : { contents }), sizeBytes } };
  }

  async function pullable(entry: CatalogueEntry): Promise<ModelPresence> {
    const allowed = await sources.checkLicense(entry);
    return { kind: 'pullable', sizeBytes: downloadBytes(entry), ...(allowed.ok ? {} : { refusal: allowed.failure.message }) };
  }

  async function presenceOfOther(id: ModelId): Promise<ModelPresence> {
    const name = parseHubName(id);
    if (name.kind === 'hub') return { kind: 'pullable', sizeBytes: undefined };
    if (name.kind === 'invalid') return { kind: 'missing', message: name.message };
    const read = await reader.read(id, id);
    if (read.kind === 'present') return { kind: 'present', facts: read.facts };
    if (read.kind === 'unusable') return { kind: 'missing', message: read.message };
    const known = await own?.find(id);
    if (known !== undefined) return known;
    const file = path.join(root, id);
    const mistakes = catalogue.problemsOf?.(id) ?? [];
    if (mistakes.length > 0) return { kind: 'missing', message: explainMistakes(id, mistakes) };
    const others = [...catalogue.keys(), ...((await own?.names()) ?? [])];
    const advice = `put the file "${file}" in place, or use an id from the catalogue${suggestModels(id, others)}`;
    return { kind: 'missing', message: `The model "${id}" does not exist; ${advice}`, isAbsent: true };
  }

  return {
    root,
    catalogue,
    formats,
    sources,
    pulls,
    async observe(ids, signal) {
      signal.throwIfAborted();
      return new Map(await inTurns([...new Set(ids)], async (id) => [id, await presence(id)] as const));
    },
    async pull(id, onProgress, signal) {
      const above = path.dirname(root);
      if (!existsSync(above))
        return fail('retry', 'ModelPullFailed', `The directory "${above}" of the model store does not exist; restore or create it`);
      return pulls.join(id, onProgress, signal);
    },
    changes(wake, signal) {
      void watchRoot([root, ...mounts.map(({ directory: mounted }) => mounted)], () => wake(WAKE_WITHIN_MS), signal);
    },
    async list(signal) {
      const pins = await sources.pins.list();
      const named = [...catalogue.values()].flatMap((entry) => [loadedPath(entry), ...entry.files.map((file) => file.path)]);
      const known = new Set([...named, ...pins.flatMap((pin) => pin.files.map((file) => file.path))]);
      const found = (await findModels(options)).filter((file) => !isWithin(known, file));
      const ids = [...catalogue.keys(), ...pins.map((pin) => pin.id), ...found].flatMap((id) => ModelId.safeParse(id).data ?? []);
      signal.throwIfAborted();
      const describe = async (id: ModelId) => ({ id, entry: await sources.known(id), presence: await presence(id) });
      const others = ((await own?.list()) ?? []).filter(({ id }) => !ids.includes(id));
      return [...(await inTurns([...new Set(ids)], describe)), ...others];
    },
  };
}

function isWithin(known: ReadonlySet<string>, file: string): boolean {
  for (let each = file; each !== '.'; each = path.dirname(each)) if (known.has(each)) return true;
  return false;
}

async function isUnpacked(root: string, { files: [first] }: CatalogueEntry): Promise<boolean> {
  const { archive, from, path: directory } = first;
  if (archive === undefined || from.kind !== 'url') return true;
  const hashes = versionsOf(from).map(({ sha256 }) => sha256);
  return (await readFileList(path.join(root, directory), hashes)) !== undefined;
}

async function watchRoot([root = '', ...mounted]: readonly string[], changed: () => void, signal: AbortSignal): Promise<void> {
  await mkdir(root, { recursive: true }).catch(() => undefined);
  if (signal.aborted) return;
  const watcher = watch([root, ...mounted], {
    depth: DEPTH,
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (file) => /\.(?:part|journal)$/.test(file),
  });
  // An unwatched store is still read by the timed resync.
  watcher.on('error', () => undefined);
  watcher.on('all', changed);
  signal.addEventListener('abort', () => void watcher.close(), { once: true });
}

async function findModels({ root, formats, mounts = [] }: ModelStoreOptions): Promise<readonly string[]> {
  const found: string[] = [];
  const isModel = (entry: StoreEntry): boolean => {
    const whats = formats.map((format) => format.recognize(entry)).filter((what) => what !== undefined);
    return whats[0] === 'model' && found.length < MAX_LISTED;
  };
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(root, directory), { withFileTypes: true }).catch(() => []);
    const names = entries.map(({ name }) => name);
    if (directory !== '' && isModel({ name: path.basename(directory), names })) return void found.push(directory);
    for (const entry of entries.toSorted((a, b) => a.name.localeCompare(b.name))) {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory()) {
        // Incomplete directories end with ".part".
        if (depth < DEPTH && !entry.name.endsWith('.part')) await visit(file, depth + 1);
      } else if (isModel({ name: entry.name })) found.push(file);
    }
  };
  await visit('', 0);
  for (const { at, directory } of mounts) {
    const names = await readdir(directory).catch(() => []);
    found.push(
      ...names
        .filter((name) => isModel({ name }))
        .toSorted()
        .map((name) => path.join(at, name)),
    );
  }
  return found;
}
