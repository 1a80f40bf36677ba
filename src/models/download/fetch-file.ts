/** Fetches one file of a model into the store, beside other programs that may be fetching the same one there: one of them downloads it, the others wait. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ok, fail, type Result } from '../../schema/words/failure.ts';
import type { CatalogueFile, Download } from '../catalogue/catalogue.ts';
import { failUnlessWritable, storageFailure } from './disk-room.ts';
import type { ModelSources } from '../model-sources.ts';
import type { PullLimits, PullFile } from './pull-file.ts';
import type { Progress } from '../../reconciler/ports.ts';
import { createPartFiles, type PartFiles } from './part-files.ts';
import { verifyFile } from './verify-file.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { writeDemoModel } from '../demo/demo-models.ts';
import type { HubAccess } from '../hub/hub-access.ts';

/** How a process fetches. */
export interface FetchOptions {
  /** Distinguishes the parts of this process from those of others on a shared volume. The same after a restart, which then resumes them. */
  readonly writer: string;
  readonly onProgress: (progress: Progress) => void;
  readonly pace?: Pace;
  readonly limits?: PullLimits;
  /** For files on the Hub. */
  readonly sources?: Pick<ModelSources, 'hub'>;
}

export interface Pace {
  /** How often to check on others that are downloading the same file. */
  readonly pollMs: number;
  /** Overrides how long the part of another writer may stay unchanged before it is ignored. */
  readonly stillMs?: number;
  /** The pause after the first failure; it doubles with each further failure in a row. */
  readonly retryMs: number;
}

export interface FileToFetch {
  readonly file: CatalogueFile;
  /** Absolute path. */
  readonly target: string;
  /** The directory for which an archive is fetched. Another program that has unpacked the archive has removed it. */
  readonly unpacked?: { readonly file: CatalogueFile; readonly target: string };
}

interface FileJob extends FileToFetch {
  readonly totalBytes: number;
  readonly parts: PartFiles;
  readonly onProgress: FetchOptions['onProgress'];
  readonly pace: Pace;
}

const PACE: Pace = { pollMs: 2000, retryMs: 1000 };
/** Of one connection in a row, without receiving anything new. */
const MAX_FRUITLESS_ATTEMPTS = 6;

export async function fetchFile(options: FetchOptions, fetched: FileToFetch, signal: AbortSignal): Promise<Result<void>> {
  const { writer, onProgress, pace = PACE, limits, sources } = options;
  const { file, target } = fetched;
  await failUnlessWritable(path.dirname(target));
  // Generating takes only a moment and replaces the file atomically, so there is nothing to coordinate.
  if (file.from.kind === 'generated') return pullEntryFile(file, { target, onProgress }, signal);
  const parts = createPartFiles({ target, writer, stillMs: pace.stillMs });
  const job: FileJob = { ...fetched, totalBytes: file.from.sizeBytes, parts, onProgress, pace };
  let isThere = false;
  try {
    isThere = await waitForOthers(job, signal);
    if (isThere) return ok(undefined);
    await parts.takeOver();
    const patience = { attempts: MAX_FRUITLESS_ATTEMPTS, pauseMs: pace.retryMs };
    const to = { target, part: parts.own, onProgress, patience, hub: sources?.hub, ...(limits === undefined ? {} : { limits }) };
    const done = await pullEntryFile(file, to, signal);
    isThere = done.ok;
    return done;
  } finally {
    // A volume that cannot be written to any more has been reported by then.
    await (isThere ? parts.clear() : parts.release()).catch(() => undefined);
  }
}

/** Waits as long as another writer is ahead. Resolves to true if the file has appeared, or what it was fetched for. */
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

/** Returns a text that changes when the file is replaced; hashing the file at each poll would take too long. */
async function stampOf(file: string): Promise<string> {
  return stat(file).then(
    ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
    () => 'absent',
  );
}

/** Brings one file of a catalogue entry into a store: downloads or generates it. The file appears completely or not at all. */

interface PullEntryFile extends Pick<PullFile, 'target' | 'part' | 'onProgress' | 'patience' | 'limits'> {
  /** For files on the Hub. */
  readonly hub?: HubAccess | undefined;
}

/** Returns the absolute path of a catalogue file in this store. */
export function targetOf(root: string, id: ModelId, file: CatalogueFile): Result<string> {
  const target = path.resolve(root, file.path);
  if (target.startsWith(path.resolve(root) + path.sep)) return ok(target);
  return fail('stalled', 'CatalogueInvalid', `Correct the catalogue entry "${id}": its file "${file.path}" is outside the store`);
}

async function pullEntryFile({ from }: CatalogueFile, { hub, ...to }: PullEntryFile, signal: AbortSignal): Promise<Result<void>> {
  if (from.kind === 'generated') {
    return writeDemoModel(from.model, to.target).then(ok, (error: unknown) => ({
      ok: false,
      failure: storageFailure(path.dirname(to.target), error),
    }));
  }
  // Imported with the first download, because undici is large.
  const { pullFile } = await import('./pull-file.ts');
  return pullFile({ ...from, ...to, ...(await hubFacts(from, hub)) }, signal);
}

/** The token belongs to the Hub alone, wherever the file is sent from. */
async function hubFacts({ repo }: Download, hub: HubAccess | undefined): Promise<Pick<PullFile, 'bearer' | 'hub'>> {
  if (repo === undefined || hub === undefined) return {};
  const token = await hub.token();
  const bearer = token === undefined ? undefined : { origin: new URL(hub.endpoint).origin, token };
  return { bearer, hub: { repo, page: `${hub.endpoint}/${repo}` } };
}
