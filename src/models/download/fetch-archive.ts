/**
 * Fetches a file that is an archive, and puts what is in it into its place in the store: a directory, which appears complete and at once. Until then the files are in a
 * hidden directory beside it. The archive is removed afterwards; a process that is killed before leaves it, and the next one continues with it.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '../../platform/error-text.ts';
import { ok, type Result } from '../../schema/words/failure.ts';
import type { ArchiveFormat, CatalogueFile, Download } from '../catalogue/catalogue.ts';
import { leastUnpackedBytes } from '../decide/judge-member.ts';
import { failUnlessWritable, createDiskRoom, type DiskRoom } from './disk-room.ts';
import { fetchFile, type FetchOptions, type FileToFetch } from './fetch-file.ts';
import { hashFile } from './ordered-hash.ts';
import { verifyFile } from './verify-file.ts';

interface ArchiveJob {
  readonly file: CatalogueFile;
  readonly from: Download;
  readonly unpackedBytes?: number | undefined;
  /** Absolute path of the directory that is to appear. */
  readonly target: string;
  /** Absolute path. */
  readonly archive: string;
  readonly room: DiskRoom;
}

const PROGRESS_EVERY_MS = 250;

/** Returns where an archive is kept until it has been unpacked. `target`: the directory for its files. */
export function archivePath(target: string, format: ArchiveFormat): string {
  return `${target}.${format}`;
}

/** `target`: the directory in which the files of the archive are kept. */
export async function fetchArchive(
  options: FetchOptions,
  { file, target }: Pick<FileToFetch, 'file' | 'target'>,
  signal: AbortSignal,
): Promise<Result<void>> {
  const { from, archive } = file;
  if (from.kind !== 'url' || archive === undefined) throw new Error(`The file "${file.path}" is no archive`);
  const room = options.limits?.room ?? createDiskRoom();
  const job = { file, from, unpackedBytes: archive.unpackedBytes, target, archive: archivePath(target, archive.format), room };
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  const fetched = await ensureArchive(options, job, signal);
  if (!fetched.ok) return fetched;
  // Another program may have unpacked it meanwhile.
  if ((await verifyFile(target, file, signal)) !== undefined) return ok(undefined);
  const unpacked = await unpack(options, job, signal);
  // Another program has unpacked the archive and removed it before this one had it open.
  if (!unpacked.ok && (await verifyFile(target, file, signal)) !== undefined) return ok(undefined);
  // The same archive would be refused again; for want of room it is worth to be kept.
  if (unpacked.ok || unpacked.failure.reason === 'ModelUnusable') await rm(job.archive, { force: true });
  return unpacked;
}

async function ensureArchive(options: FetchOptions, job: ArchiveJob, signal: AbortSignal): Promise<Result<void>> {
  const { archive, from, file, target, room } = job;
  if (await isWhole(archive, from, signal)) return ok(undefined);
  const directory = path.dirname(target);
  const there = await stat(`${archive}.${options.writer}.part`).catch(() => undefined);
  // A part is a sparse file.
  const partBytes = Math.min(from.sizeBytes, 512 * (there?.blocks ?? 0));
  const both = await room.reserve(directory, () => from.sizeBytes - partBytes + leastUnpackedBytes({ ...job, sizeBytes: from.sizeBytes }));
  if (!both.ok) return both;
  both.value();
  const reserved = await room.reserve(directory, () => leastUnpackedBytes({ ...job, sizeBytes: from.sizeBytes }));
  if (!reserved.ok) return reserved;
  try {
    const plain = { file: { path: file.path, from }, target: archive };
    return await fetchFile(options, { ...plain, unpacked: { file, target } }, signal);
  } finally {
    reserved.value();
  }
}

/** Hashes it whatever its size is: nothing is unpacked from an archive that was not compared with its hash. */
async function isWhole(archive: string, { sizeBytes, sha256 }: Download, signal: AbortSignal): Promise<boolean> {
  const facts = await stat(archive).catch(() => undefined);
  if (facts?.isFile() !== true || facts.size !== sizeBytes) return false;
  return (await hashFile(archive, signal)).digest('hex') === sha256.toLowerCase();
}

async function unpack(options: FetchOptions, job: ArchiveJob, signal: AbortSignal): Promise<Result<void>> {
  const { target, from, archive, room, unpackedBytes } = job;
  const into = hidden(target, `${options.writer}.unpack`);
  const what = `${path.basename(new URL(from.url).pathname)} (unpacking)`;
  let reportedAt = -Infinity;
  const onBytes = (doneBytes: number): void => {
    if (performance.now() - reportedAt < PROGRESS_EVERY_MS) return;
    reportedAt = performance.now();
    options.onProgress({ what, doneBytes, ...(unpackedBytes === undefined ? {} : { totalBytes: unpackedBytes }) });
  };
  try {
    // What a process left that was killed.
    await rm(into, { recursive: true, force: true });
    await mkdir(into);
    // Imported with the first archive.
    const { unpackArchive } = await import('../archive/unpack-archive.ts');
    const unpacked = await unpackArchive({ ...from, archive, unpackedBytes, into, room, onBytes }, signal);
    if (!unpacked.ok) return unpacked;
    await publish(unpacked.value, job, signal);
    return ok(undefined);
  } finally {
    await rm(into, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** A directory that is there already is damaged, or was unpacked by another program at the same time. A server keeps the files that it has open. */
async function publish(root: string, { target, file }: ArchiveJob, signal: AbortSignal): Promise<void> {
  await syncDirectory(root);
  const isTaken = await rename(root, target).then(
    () => false,
    (error: unknown) => {
      if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error))) return true;
      throw error;
    },
  );
  if (isTaken && (await verifyFile(target, file, signal)) === undefined) {
    const old = hidden(target, `${randomUUID()}.old`);
    await rename(target, old);
    await rename(root, target);
    await rm(old, { recursive: true, force: true });
  }
  await syncDirectory(path.dirname(target));
}

/** Hidden and with the ending of what is not complete, so that nobody takes it for a model, and `svcctl model prune` finds what a killed process leaves. */
function hidden(target: string, name: string): string {
  return path.join(path.dirname(target), `.${path.basename(target)}.${name}.part`);
}

/** So that the names survive a power failure as the content does. Some file systems do not offer it. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
