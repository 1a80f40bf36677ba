/** Downloads, generates or verifies one file of a model. Of several programs, one downloads it and the others wait. */
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ok, fail, type Result } from '../../schema/words/failure.ts';
import { verifyUnpacked } from '../archive/file-list.ts';
import { versionsOf, type CatalogueFile, type Download, type FileVersion } from '../catalogue/catalogue.ts';
import { failUnlessWritable, storageFailure } from './disk-room.ts';
import { loadDemoToolbox, type ModelSources } from '../model-sources.ts';
import type { PullLimits, PullFile } from './pull-file.ts';
import type { Progress } from '../../reconciler/ports.ts';
import { createPartFiles, type PartFiles } from './take-over-part.ts';
import { versionOfFile } from './verify-hash.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { bearerOf, type HubAccess } from '../hub/hub-access.ts';

export interface FetchOptions {
  /** Names the parts of this process on a shared volume. The same after a restart, which then resumes them. */
  readonly writer: string;
  readonly onProgress: (progress: Progress) => void;
  readonly pace?: Pace;
  readonly limits?: PullLimits;
  readonly sources?: Pick<ModelSources, 'hub' | 'acceptedFiles'>;
}

export interface Pace {
  readonly pollMs: number;
  /** How long the part of another writer may stay unchanged before it is ignored. */
  readonly stillMs?: number;
  /** After the first failure; doubles with each further failure in a row. */
  readonly retryMs: number;
}

export interface FileToFetch {
  readonly file: CatalogueFile;
  readonly target: string;
  /** The directory for which an archive is fetched: a program that has unpacked the archive has removed it. */
  readonly unpacked?: { readonly file: CatalogueFile; readonly target: string };
}

interface FileJob extends FileToFetch, Pick<FetchOptions, 'onProgress'>, Required<Pick<FetchOptions, 'pace'>> {
  readonly totalBytes: number;
  readonly parts: PartFiles;
}

const PACE: Pace = { pollMs: 2000, retryMs: 1000 };
/** Attempts of one connection in a row without new data. */
const MAX_FRUITLESS_ATTEMPTS = 6;

/** Resolves to the version that was downloaded; undefined if nothing had to be. */
export async function fetchFile(
  options: FetchOptions,
  fetched: FileToFetch,
  signal: AbortSignal,
): Promise<Result<FileVersion | undefined>> {
  const { writer, onProgress, pace = PACE, limits, sources } = options;
  const { file, target } = fetched;
  await failUnlessWritable(path.dirname(target));
  if (file.from.kind === 'generated') return generate(file, target);
  const parts = createPartFiles({ target, writer, stillMs: pace.stillMs });
  const job: FileJob = { ...fetched, totalBytes: file.from.sizeBytes, parts, onProgress, pace };
  let isThere = false;
  try {
    isThere = await waitForOthers(job, signal);
    if (isThere) return ok(undefined);
    await parts.takeOver();
    const patience = { attempts: MAX_FRUITLESS_ATTEMPTS, pauseMs: pace.retryMs };
    const to = { target, part: parts.own, onProgress, patience, ...(limits === undefined ? {} : { limits }) };
    // Imported with the first download, because undici is large.
    const { pullFile } = await import('./pull-file.ts');
    let version: FileVersion | undefined;
    const onVersion = (sent: FileVersion): void => void (version = sent);
    const done = await pullFile({ ...file.from, ...to, onVersion, ...(await hubFacts(file.from, sources?.hub)) }, signal);
    isThere = done.ok;
    if (!done.ok) return done;
    if (version !== undefined && file.from.sha256 === '') await sources?.acceptedFiles?.record({ url: file.from.url, ...version });
    return ok(version);
  } finally {
    await (isThere ? parts.clear() : parts.release()).catch(() => undefined);
  }
}

/** Waits while another writer is ahead. Resolves to true if the file, or what it was fetched for, has appeared. */
async function waitForOthers(job: FileJob, signal: AbortSignal): Promise<boolean> {
  const { file, target, unpacked, totalBytes, parts, onProgress, pace } = job;
  const what = `${path.basename(target)} (downloaded by another program)`;
  const wanted = unpacked === undefined ? [{ file, target }] : [{ file, target }, unpacked];
  const stamps = async (): Promise<readonly string[]> => Promise.all(wanted.map((each) => stampOf(each.target)));
  let verified = await stamps();
  for (;;) {
    const ahead = await parts.ahead();
    const now = await stamps();
    for (const [index, each] of wanted.entries())
      if (now[index] !== verified[index] && (await verifyFile(each.target, each.file, signal)) !== undefined) return true;
    verified = now;
    if (ahead === undefined) return false;
    onProgress({ what, doneBytes: ahead.bytes, totalBytes });
    await sleep(pace.pollMs, undefined, { signal });
  }
}

/** Changes when the file is replaced: hashing it at each poll would take too long. */
async function stampOf(file: string): Promise<string> {
  const facts = await stat(file).catch(() => undefined);
  return facts === undefined ? 'absent' : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;
}

export function targetOf(root: string, id: ModelId, file: CatalogueFile): Result<string> {
  const target = path.resolve(root, file.path);
  if (target.startsWith(path.resolve(root) + path.sep)) return ok(target);
  const problem = `The file "${file.path}" of the catalogue entry "${id}" is outside the store`;
  return fail('stalled', 'CatalogueInvalid', `${problem}; correct the entry`);
}

/** Takes only a moment and replaces the file atomically, so there is nothing to coordinate. */
async function generate({ path: file }: CatalogueFile, target: string): Promise<Result<undefined>> {
  try {
    await (await loadDemoToolbox()).writeDemoFile(file, target);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: storageFailure(path.dirname(target), error) };
  }
}

async function hubFacts({ repo }: Download, hub: HubAccess | undefined): Promise<Pick<PullFile, 'bearer' | 'hub'>> {
  if (repo === undefined || hub === undefined) return {};
  return { bearer: await bearerOf(hub), hub: { repo, page: `${hub.endpoint}/${repo}` } };
}

/** Takes two to ten seconds on common disks, and every start of a pod waits for it. */
const HASH_UP_TO_BYTES = 2 * 2 ** 30;

/** Undefined if the file is missing or differs. For an archive, `file` is the directory of its files. */
export async function verifyFile(file: string, expected: CatalogueFile, signal: AbortSignal): Promise<'content' | 'size' | undefined> {
  const { from, archive } = expected;
  if (archive !== undefined && from.kind === 'url') {
    const sha256 = versionsOf(from).map((version) => version.sha256);
    return await verifyUnpacked(file, { sha256, hashUpToBytes: HASH_UP_TO_BYTES }, signal);
  }
  const facts = await stat(file).catch(() => undefined);
  if (facts?.isFile() !== true) return undefined;
  if (from.kind === 'generated') {
    const { encodeDemoFile } = await loadDemoToolbox();
    return Buffer.compare(encodeDemoFile(expected.path), await readFile(file)) === 0 ? 'content' : undefined;
  }
  const ofSize = versionsOf(from).filter(({ sizeBytes }) => sizeBytes === facts.size);
  if (ofSize.length > 0 && facts.size > HASH_UP_TO_BYTES) return 'size';
  return (await versionOfFile(file, ofSize, signal)) === undefined ? undefined : 'content';
}
