/**
 * Makes sure that a model lies whole in a store before a server is started on it: what the pods of a slot run first. What is there is verified, what
 * the catalogue knows is fetched when it is absent or damaged, and anything else is a failure that names the file that should be there.
 */
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import type { ModelId } from '../../schema/names.ts';
import { CATALOGUE, type Catalogue, type CatalogueEntry, type CatalogueFile } from '../catalogue.ts';
import { checkFile } from './check-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import { createPartFiles, type PartFiles } from './part-files.ts';
import { notWritten, pullEntryFile, targetOf } from './pull-entry.ts';
import { createModelReader } from '../read-model.ts';

export interface FetchModel {
  /** Of the store; absolute. */
  readonly root: string;
  readonly id: ModelId;
  readonly catalogue?: Catalogue;
  /** Tells the unfinished files of this process from those of others that share the volume; the same after a restart, which then goes on with them. */
  readonly writer: string;
  readonly onProgress: (progress: Progress) => void;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  readonly pace?: Pace;
}

export interface Pace {
  /** How often others who fetch the same file are looked at. */
  readonly lookMs: number;
  /** Others whose unfinished file has not changed for so long are not waited for. */
  readonly stillMs?: number;
  /** The first pause after a failure; each further one in a row is twice as long. */
  readonly retryMs: number;
}

export interface FetchedModel {
  /** Absolute path of the file that the server is given. */
  readonly file: string;
  readonly sizeBytes: number;
  readonly fetched: boolean;
  /** `content`: every byte was compared with what the catalogue says. `header`: it is whole and readable. */
  readonly verified: 'content' | 'header';
}

const PACE: Pace = { lookMs: 2000, retryMs: 1000 };
/** In a row, without a byte more. */
const FRUITLESS_ATTEMPTS = 6;

export async function fetchModel(options: FetchModel, signal: AbortSignal): Promise<Result<FetchedModel>> {
  const entry = (options.catalogue ?? CATALOGUE).get(options.id);
  try {
    return entry === undefined ? await verifyOwn(options) : await fetchEntry(options, entry, signal);
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `Fetching the model "${options.id}" was interrupted; it goes on next time`);
    return notWritten(options.root, error);
  }
}

/** A file that somebody puts there. */
async function verifyOwn({ root, id }: FetchModel): Promise<Result<FetchedModel>> {
  const read = await createModelReader(root).read(id, id);
  if (read.kind === 'unusable') return fail('stalled', 'ModelUnusable', read.message);
  if (read.kind === 'absent') {
    const message = `Put the file "${path.join(root, id)}" into the model store: it is not there, and the catalogue has no model "${id}"`;
    return fail('stalled', 'ModelMissing', message);
  }
  return ok({ file: read.facts.hostPath, sizeBytes: read.facts.sizeBytes, fetched: false, verified: 'header' });
}

async function fetchEntry(options: FetchModel, entry: CatalogueEntry, signal: AbortSignal): Promise<Result<FetchedModel>> {
  const first = await fetchFiles(options, entry, 'what is not good', signal);
  if (!first.ok) return first;
  const read = await readEntry(options, entry);
  if (read.ok) return ok({ ...read.value, ...first.value });
  // right by its size, and too large to be compared byte by byte
  const again = await fetchFiles(options, entry, 'everything', signal);
  if (!again.ok) return again;
  const reread = await readEntry(options, entry);
  return reread.ok ? ok({ ...reread.value, ...again.value }) : reread;
}

async function readEntry({ root, id }: FetchModel, entry: CatalogueEntry): Promise<Result<Pick<FetchedModel, 'file' | 'sizeBytes'>>> {
  const read = await createModelReader(root).read(id, entry.files[0].path);
  if (read.kind === 'present') return ok({ file: read.facts.hostPath, sizeBytes: read.facts.sizeBytes });
  const message = read.kind === 'unusable' ? read.message : `The file "${path.join(root, entry.files[0].path)}" of "${id}" is not there`;
  return fail('stalled', 'ModelUnusable', message);
}

type Fetched = Pick<FetchedModel, 'fetched' | 'verified'>;

async function fetchFiles(
  options: FetchModel,
  entry: CatalogueEntry,
  which: 'what is not good' | 'everything',
  signal: AbortSignal,
): Promise<Result<Fetched>> {
  let fetched = false;
  let verified: FetchedModel['verified'] = 'content';
  for (const file of entry.files) {
    const target = targetOf(options.root, options.id, file);
    if (!target.ok) return target;
    const check = await checkFile(target.value, file, signal);
    if (which === 'what is not good' && check.kind === 'good') {
      if (check.by === 'size') verified = 'header';
      continue;
    }
    const done = await fetchFile(options, file, target.value, signal);
    if (!done.ok) return done;
    fetched = true;
  }
  return ok({ fetched, verified });
}

async function fetchFile(options: FetchModel, file: CatalogueFile, target: string, signal: AbortSignal): Promise<Result<void>> {
  await failUnlessWritable(path.dirname(target));
  // takes a moment, and replaces the file at once: there is nothing to wait for
  if (file.from.kind === 'generated') return pullEntryFile(file, { target, onProgress: options.onProgress }, signal);
  const { writer, now, pace } = options;
  const parts = createPartFiles({ target, writer, now, ...(pace?.stillMs === undefined ? {} : { stillMs: pace.stillMs }) });
  if (await waitForOthers(options, file, target, parts, signal)) {
    await parts.clear();
    return ok(undefined);
  }
  const pulled = await pullPatiently(options, file, target, parts.own, signal);
  if (pulled.ok) await parts.clear();
  return pulled;
}

/** The directory, or where it would be made; what `mkdir` itself says of a read-only volume is that something does not exist. */
async function failUnlessWritable(directory: string): Promise<void> {
  try {
    await access(directory, constants.W_OK);
  } catch (error) {
    const above = path.dirname(directory);
    if (codeOf(error) !== 'ENOENT' || above === directory) throw error;
    await failUnlessWritable(above);
  }
}

/** Whether another writer brought the file. Ends without it when nobody else is at it any more. */
async function waitForOthers(
  { onProgress, pace }: FetchModel,
  file: CatalogueFile,
  target: string,
  parts: PartFiles,
  signal: AbortSignal,
): Promise<boolean> {
  let checked = await stampOf(target);
  for (;;) {
    const ahead = await parts.ahead();
    const stamp = await stampOf(target);
    if (stamp !== checked && (await checkFile(target, file, signal)).kind === 'good') return true;
    checked = stamp;
    if (ahead === undefined) return false;
    onProgress({
      what: `${path.basename(target)}, which another pod fetches`,
      doneBytes: ahead.bytes,
      ...(file.sizeBytes === undefined ? {} : { totalBytes: file.sizeBytes }),
    });
    await sleep((pace ?? PACE).lookMs, undefined, { signal });
  }
}

/** Changes when the file is replaced: reading it all at each look would take too long. */
async function stampOf(file: string): Promise<string> {
  return stat(file).then(
    ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
    () => 'absent',
  );
}

/** Goes on after broken connections as long as bytes come. */
async function pullPatiently(
  options: FetchModel,
  file: CatalogueFile,
  target: string,
  part: string,
  signal: AbortSignal,
): Promise<Result<void>> {
  let most = -1;
  let fruitless = 0;
  for (;;) {
    let reached = 0;
    const onProgress = (progress: Progress): void => {
      reached = Math.max(reached, progress.doneBytes);
      options.onProgress(progress);
    };
    const pulled = await pullEntryFile(file, { target, part, onProgress }, signal);
    if (pulled.ok || pulled.failure.kind === 'stalled' || signal.aborted) return pulled;
    fruitless = reached > most ? 1 : fruitless + 1;
    most = Math.max(most, reached);
    if (fruitless >= FRUITLESS_ATTEMPTS) return pulled;
    await sleep((options.pace ?? PACE).retryMs * 2 ** (fruitless - 1), undefined, { signal });
  }
}
