/** The model store: a directory of model files, and the catalogue of models that can be pulled into it. */
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { watch } from 'chokidar';
import type { ModelPresence, ModelStore } from '../reconciler/ports.ts';
import { fail, type Result } from '../schema/failure.ts';
import { ModelId } from '../schema/names.ts';
import { CATALOGUE, downloadBytes, type Catalogue, type CatalogueEntry } from './catalogue.ts';
import { shardNames } from './decide/model-facts.ts';
import { pullEntry } from './pull/pull-entry.ts';
import { createModelReader } from './read-model.ts';

export interface ListedModel {
  readonly id: ModelId;
  /** Undefined if the model is not in the catalogue. */
  readonly entry: CatalogueEntry | undefined;
  readonly presence: ModelPresence;
}

export interface DirectoryModelStore extends ModelStore {
  /** Lists every entry of the catalogue and every other GGUF model in the directory. */
  list(signal: AbortSignal): Promise<readonly ListedModel[]>;
}

export interface ModelStoreOptions {
  /** Absolute. */
  readonly root: string;
  readonly catalogue?: Catalogue;
}

/** Deeper directories are neither watched nor listed. A model that a slot names is found at any depth. */
const DEPTH = 5;
const MAX_LISTED = 2000;
/** A file that is being copied changes many times a second; one pass in this time is enough. */
const WAKE_WITHIN_MS = 100;

export function createModelStore({ root, catalogue = CATALOGUE }: ModelStoreOptions): DirectoryModelStore {
  const reader = createModelReader(root);
  const pulls = new Map<ModelId, Promise<Result<void>>>();

  async function presence(id: ModelId): Promise<ModelPresence> {
    const entry = catalogue.get(id);
    const files = entry?.files.map((file) => file.path) ?? [id];
    const reads = await Promise.all(files.map((file) => reader.read(id, file)));
    const unusable = reads.find((read) => read.kind === 'unusable');
    if (unusable !== undefined) return { kind: 'missing', message: unusable.message };
    if (reads.some((read) => read.kind === 'absent')) {
      if (entry !== undefined) return { kind: 'pullable', sizeBytes: downloadBytes(entry) };
      return {
        kind: 'missing',
        message: `Put the file "${path.join(root, id)}" in place, or use an id from the catalogue: the model "${id}" does not exist`,
      };
    }
    const [first] = reads;
    if (first?.kind !== 'present') return { kind: 'missing', message: `The catalogue entry "${id}" has no files` };
    const sizeBytes = reads.reduce((sum, read) => sum + (read.kind === 'present' ? read.facts.sizeBytes : 0), 0);
    return { kind: 'present', facts: { ...first.facts, sizeBytes } };
  }

  return {
    root,
    async observe(ids, signal) {
      signal.throwIfAborted();
      return new Map(await Promise.all([...new Set(ids)].map(async (id) => [id, await presence(id)] as const)));
    },
    async pull(id, onProgress, signal) {
      const running = pulls.get(id);
      if (running !== undefined) return running;
      const above = path.dirname(root);
      if (!existsSync(above))
        return fail('retry', 'ModelPullFailed', `Put "${above}" back, or create it: the model store is missing with it`);
      const pull = pullEntry({ root, id, entry: catalogue.get(id), onProgress }, signal).finally(() => pulls.delete(id));
      pulls.set(id, pull);
      return pull;
    },
    changes(wake, signal) {
      void watchRoot(root, () => wake(WAKE_WITHIN_MS), signal);
    },
    async list(signal) {
      const known = new Set([...catalogue.values()].flatMap((entry) => entry.files.map((file) => file.path)));
      const found = (await findModels(root)).filter((file) => !known.has(file));
      const ids = [...catalogue.keys(), ...found].flatMap((id) => ModelId.safeParse(id).data ?? []);
      signal.throwIfAborted();
      return Promise.all(ids.map(async (id) => ({ id, entry: catalogue.get(id), presence: await presence(id) })));
    },
  };
}

async function watchRoot(root: string, changed: () => void, signal: AbortSignal): Promise<void> {
  await mkdir(root, { recursive: true }).catch(() => undefined);
  if (signal.aborted) return;
  const watcher = watch(root, { depth: DEPTH, ignoreInitial: true, followSymlinks: false, ignored: (file) => file.endsWith('.part') });
  // A store that cannot be watched is still read by the timed resync.
  watcher.on('error', () => undefined);
  watcher.on('all', changed);
  signal.addEventListener('abort', () => void watcher.close(), { once: true });
}

/** Returns the paths of GGUF files relative to the root: only the first shard of a split model, and no projectors. */
async function findModels(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(root, directory), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => a.name.localeCompare(b.name))) {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory() && depth < DEPTH) await visit(file, depth + 1);
      const isModel = !entry.isDirectory() && /\.gguf$/i.test(entry.name) && !/mmproj/i.test(entry.name);
      if (isModel && shardNames(entry.name)[0] === entry.name && found.length < MAX_LISTED) found.push(file);
    }
  };
  await visit('', 0);
  return found;
}
