/** Ensures that a model is complete in the store before its server starts; init containers of pods run this. */
import path from 'node:path';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import type { ModelFormat } from '../../providers/provider.ts';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { DEMO_CATALOGUE, loadedPath, whyNotSelectable } from '../catalogue/catalogue.ts';
import type { Catalogue, CatalogueEntry, CatalogueFile, Download } from '../catalogue/catalogue.ts';
import type { KeyedLock } from '../../platform/semaphore.ts';
import type { ModelSources } from '../model-sources.ts';
import type { MountedModels } from '../decide/workflows-mount.ts';
import { fetchArchive } from './fetch-archive.ts';
import { fetchFile, targetOf, verifyFile, type FetchOptions } from './fetch-file.ts';
import { suggestModels } from '../decide/parse-model-name.ts';
import { storageFailure, failUnlessWritable } from './disk-room.ts';
import { createModelReader } from '../read-model.ts';
import { takeBytes } from './place-file.ts';
import { versionOfFile } from './verify-hash.ts';

export interface FetchModel extends FetchOptions {
  readonly root: string;
  readonly id: ModelId;
  /** A file that several formats recognize belongs to the first one. */
  readonly formats: readonly ModelFormat[];
  /** Directories whose files appear in the store. */
  readonly mounts?: readonly MountedModels[];
  readonly catalogue?: Catalogue;
  /** Resolves names, also those of the catalogue. Default: only the catalogue. */
  readonly sources?: ModelSources;
  /** Held per path, since two names may mean the same file. */
  readonly lock?: KeyedLock;
}

export interface FetchedModel {
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
      return listed === undefined ? fetched : explainEntry(listed, fetched, sources?.acceptedFiles !== undefined);
    }
    const model = await readModel(options, id);
    return model.ok ? ok({ ...model.value, fetched: false, verified: 'header' }) : model;
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `Fetching the model "${id}" was interrupted; the next attempt resumes it`);
    return { ok: false, failure: storageFailure(root, error) };
  }
}

/** Completes what a download has found out by what the user can do about it. */
function explainEntry<T>({ id, isOwn, files }: CatalogueEntry, fetched: Result<T>, canAccept: boolean): Result<T> {
  if (fetched.ok) return fetched;
  const { reason, message } = fetched.failure;
  if (reason === 'ModelHashMismatch' && files.some(({ from }) => from.kind === 'url' && from.others !== undefined)) {
    const correct = isOwn === true ? 'correct the entry in "models.toml"' : 'update the catalogue ("svcctl catalogue update")';
    const accept = canAccept
      ? `accept the file with "svcctl model pull ${id} --accept-new"`
      : 'add the file to "models.toml" with "override = true"';
    return fail('stalled', reason, `${message}; ${correct}, or, if you trust it, ${accept}`);
  }
  if (reason !== 'ModelMissing') return fetched;
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

async function fetchEntry(options: FetchModel, entry: CatalogueEntry, which: Which, signal: AbortSignal): Promise<Result<FetchedModel>> {
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
  readonly target: string;
}

type Which = 'missing or damaged' | 'all';

async function ensureFile(job: FileOfEntry, which: Which, signal: AbortSignal): Promise<Result<'content' | 'size' | 'fetched'>> {
  const { options, entry, file, target } = job;
  signal.throwIfAborted();
  const match = which === 'all' ? undefined : await verifyFile(target, file, signal);
  if (match !== undefined) return ok(match);
  const allowed = (await options.sources?.checkLicense(entry)) ?? ok(undefined);
  if (!allowed.ok) return allowed;
  if (await reuseFile(job, signal)) return ok('fetched');
  const done = await (file.archive === undefined ? fetchFile : fetchArchive)(options, { file, target }, signal);
  return done.ok ? ok('fetched') : done;
}

function inWhole(options: FetchModel, { files }: CatalogueEntry, beforeBytes: number): FetchModel {
  if (files.length === 1) return options;
  const totalBytes = files.reduce((sum, file) => sum + bytesOf(file), 0);
  const onProgress = (progress: Progress): void =>
    options.onProgress({ ...progress, doneBytes: beforeBytes + progress.doneBytes, totalBytes });
  return { ...options, onProgress };
}

const bytesOf = ({ from }: CatalogueFile): number => (from.kind === 'url' ? from.sizeBytes : 0);

/** Reuses a file of the store with the same checksum under another name. */
async function reuseFile(job: FileOfEntry, signal: AbortSignal): Promise<boolean> {
  const { file, options } = job;
  if (file.from.kind !== 'url' || file.archive !== undefined) return false;
  for (const candidate of await pathsWith(file.from, options))
    if (candidate !== file.path && (await takeFrom(path.join(options.root, candidate), job, file.from, signal))) return true;
  return false;
}

async function pathsWith({ sha256, sizeBytes }: Download, { catalogue = DEMO_CATALOGUE, sources }: FetchModel): Promise<readonly string[]> {
  const wanted = sha256.toLowerCase();
  const pinned = ((await sources?.pins.list()) ?? []).flatMap((pin) => pin.files);
  const listed = [...catalogue.values()].flatMap((entry) => entry.files);
  return [
    ...pinned.flatMap((file) => (file.sha256 === wanted && file.sizeBytes === sizeBytes && file.archive === undefined ? [file.path] : [])),
    ...listed.flatMap(({ path: each, from, archive }) =>
      from.kind === 'url' && from.sha256.toLowerCase() === wanted && from.sizeBytes === sizeBytes && archive === undefined ? [each] : [],
    ),
  ];
}

async function takeFrom(source: string, { target, options }: FileOfEntry, from: Download, signal: AbortSignal): Promise<boolean> {
  const { writer, onProgress } = options;
  const { sizeBytes } = from;
  const facts = await stat(source).catch(() => undefined);
  if (facts?.isFile() !== true || facts.size !== sizeBytes) return false;
  onProgress({ what: `${path.basename(target)} (comparing a copy in the store)`, doneBytes: 0, totalBytes: sizeBytes });
  const part = `${target}.${writer}.reuse.part`;
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  try {
    await rm(part, { force: true });
    const taken = await takeBytes(source, part, sizeBytes);
    if (typeof taken !== 'string' || (await versionOfFile(part, [from], signal)) === undefined) return false;
    await rename(part, target);
    return true;
  } finally {
    await rm(part, { force: true });
  }
}
