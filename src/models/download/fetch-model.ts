/**
 * Ensures that a model is complete in the store before its server starts; init containers of pods run this. Verifies a
 * model of the catalogue and downloads it if it is missing or damaged. Any other model must already be there.
 */
import path from 'node:path';
import type { ModelFormat } from '../../providers/provider.ts';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import {
  DEMO_CATALOGUE,
  loadedPath,
  whyNotSelectable,
  type Catalogue,
  type CatalogueEntry,
  type CatalogueFile,
} from '../catalogue/catalogue.ts';
import type { KeyedLock } from '../../platform/semaphore.ts';
import type { ModelSources } from '../model-sources.ts';
import type { MountedModels } from '../decide/workflows-mount.ts';
import { fetchArchive } from './fetch-archive.ts';
import { fetchFile, targetOf, type FetchOptions } from './fetch-file.ts';
import { reuseFile } from './place-copy.ts';
import { suggestModels } from '../decide/parse-model-name.ts';
import { storageFailure } from './disk-room.ts';
import { createModelReader } from '../read-model.ts';
import { verifyFile } from './verify-file.ts';

export interface FetchModel extends FetchOptions {
  /** Absolute path of the store. */
  readonly root: string;
  readonly id: ModelId;
  readonly formats: readonly ModelFormat[];
  /** Directories whose files appear in the store. Default: none. */
  readonly mounts?: readonly MountedModels[];
  readonly catalogue?: Catalogue;
  /** Resolves names, also those of the catalogue. Default: only the catalogue. */
  readonly sources?: ModelSources;
  /** Held per path, since two names may mean the same file. */
  readonly lock?: KeyedLock;
}

export interface FetchedModel {
  /** Absolute path of the file or directory that the server loads. */
  readonly file: string;
  readonly sizeBytes: number;
  readonly fetched: boolean;
  /** `content`: the checksum matches the catalogue. `header`: the file is complete and its header is valid. */
  readonly verified: 'content' | 'header';
}

export async function fetchModel(options: FetchModel, signal: AbortSignal): Promise<Result<FetchedModel>> {
  const { root, sources, id, catalogue = DEMO_CATALOGUE } = options;
  try {
    const listed = catalogue.get(id);
    const refusal = listed === undefined ? undefined : whyNotSelectable(listed);
    if (refusal !== undefined) return fail('stalled', 'ModelMissing', refusal);
    const resolved = sources === undefined ? ok(listed) : await sources.resolve(id, signal);
    if (!resolved.ok) return resolved;
    if (resolved.value !== undefined) {
      const fetched = await fetchEntry(options, resolved.value, 'missing or damaged', signal);
      return listed === undefined ? fetched : explainGone(listed, fetched);
    }
    const model = await readModel(options, id);
    return model.ok ? ok({ ...model.value, fetched: false, verified: 'header' }) : model;
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `Fetching the model "${id}" was interrupted; the next attempt resumes it`);
    return { ok: false, failure: storageFailure(root, error) };
  }
}

function explainGone<T>({ id, isOwn, files }: CatalogueEntry, fetched: Result<T>): Result<T> {
  if (fetched.ok || fetched.failure.reason !== 'ModelMissing') return fetched;
  const repo = files.flatMap(({ from }) => (from.kind === 'url' ? (from.repo ?? []) : []))[0];
  const name = repo === undefined ? 'another model' : `the model "hf:${repo}"`;
  const advice = isOwn === true ? 'correct its entry in "models.toml"' : `use ${name} instead`;
  return fail('stalled', 'ModelMissing', `The files of "${id}" are not where the catalogue says; ${advice}`);
}

async function readModel(
  { root, formats, mounts, id, catalogue = DEMO_CATALOGUE }: FetchModel,
  file: string,
  provider?: ProviderKind,
): Promise<Result<Pick<FetchedModel, 'file' | 'sizeBytes'>>> {
  const model = await createModelReader(root, formats, mounts).read(id, file, provider);
  if (model.kind === 'present') return ok({ file: model.facts.hostPath, sizeBytes: model.facts.sizeBytes });
  if (model.kind === 'unusable') return fail('stalled', 'ModelUnusable', model.message);
  const problem = `The file "${path.join(root, file)}" does not exist, and the catalogue cannot provide it`;
  return fail('stalled', 'ModelMissing', `${problem}; put it into the model store${suggestModels(id, catalogue.keys())}`);
}

async function fetchEntry(
  options: FetchModel,
  entry: CatalogueEntry,
  which: 'missing or damaged' | 'all',
  signal: AbortSignal,
): Promise<Result<FetchedModel>> {
  const { lock = async (_, work) => work() } = options;
  let fetched = false;
  let verified: FetchedModel['verified'] = 'content';
  let doneBytes = 0;
  for (const file of entry.files) {
    const target = targetOf(options.root, options.id, file);
    if (!target.ok) return target;
    const job: FileOfEntry = { options: inWhole(options, entry, doneBytes), entry, file, target: target.value };
    const found = await lock(target.value, () => ensureFile(job, which, signal));
    if (!found.ok) return found;
    if (found.value === 'size') verified = 'header';
    if (found.value === 'fetched') fetched = true;
    doneBytes += bytesOf(file);
  }
  const model = await readModel(options, loadedPath(entry), entry.provider);
  if (model.ok) return ok({ ...model.value, fetched, verified });
  // A file of the right size that was too large to hash may still be damaged.
  return which === 'all' || verified === 'content' ? model : fetchEntry(options, entry, 'all', signal);
}

interface FileOfEntry {
  readonly options: FetchModel;
  readonly entry: CatalogueEntry;
  readonly file: CatalogueFile;
  /** Absolute path. */
  readonly target: string;
}

async function ensureFile(
  { options, entry, file, target }: FileOfEntry,
  which: 'missing or damaged' | 'all',
  signal: AbortSignal,
): Promise<Result<'content' | 'size' | 'fetched'>> {
  signal.throwIfAborted();
  const match = which === 'all' ? undefined : await verifyFile(target, file, signal);
  if (match !== undefined) return ok(match);
  const allowed = (await options.sources?.checkLicense(entry)) ?? ok(undefined);
  if (!allowed.ok) return allowed;
  if (await reuseFile({ ...options, file, target }, signal)) return ok('fetched');
  const done = await (file.archive === undefined ? fetchFile : fetchArchive)(options, { file, target }, signal);
  return done.ok ? ok('fetched') : done;
}

/** Reports the progress of one file as progress of the whole model. */
function inWhole(options: FetchModel, { files }: CatalogueEntry, beforeBytes: number): FetchModel {
  if (files.length === 1) return options;
  const totalBytes = files.reduce((sum, file) => sum + bytesOf(file), 0);
  const onProgress = (progress: Progress): void =>
    options.onProgress({ ...progress, doneBytes: beforeBytes + progress.doneBytes, totalBytes });
  return { ...options, onProgress };
}

function bytesOf({ from }: CatalogueFile): number {
  return from.kind === 'url' ? from.sizeBytes : 0;
}
