/** Fetches an archive, unpacks it and removes it. If the process is killed before, the next one continues. */
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ok, type Result } from '../../schema/words/failure.ts';
import { versionsOf, type ArchiveFormat, type CatalogueFile, type Download, type FileVersion } from '../catalogue/catalogue.ts';
import { leastUnpackedBytes } from '../decide/judge-member.ts';
import { failUnlessWritable, createDiskRoom, type DiskRoom } from './disk-room.ts';
import { fetchFile, verifyFile, type FetchOptions, type FileToFetch } from './fetch-file.ts';
import { hiddenPath, placeDirectory } from './place-file.ts';
import { versionOfFile } from './verify-hash.ts';

interface ArchiveJob {
  readonly file: CatalogueFile;
  readonly from: Download;
  readonly unpackedBytes?: number | undefined;
  readonly target: string;
  readonly archive: string;
  readonly room: DiskRoom;
}

const PROGRESS_EVERY_MS = 250;

export const archivePath = (target: string, format: ArchiveFormat): string => `${target}.${format}`;

/** `target`: the directory for the files. */
export async function fetchArchive(options: FetchOptions, { file, target }: FileToFetch, signal: AbortSignal): Promise<Result<void>> {
  const { from, archive } = file;
  if (from.kind !== 'url' || archive === undefined) throw new Error(`The file "${file.path}" is no archive`);
  const room = options.limits?.room ?? createDiskRoom();
  const job = { file, from, unpackedBytes: archive.unpackedBytes, target, archive: archivePath(target, archive.format), room };
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  const fetched = await ensureArchive(options, job, signal);
  if (!fetched.ok) return fetched;
  // Another program may have unpacked it meanwhile, or removed the archive before this one opened it.
  if ((await verifyFile(target, file, signal)) !== undefined) return ok(undefined);
  const version = fetched.value ?? (await versionOfFile(job.archive, versionsOf(from), signal));
  const unpacked = await unpack(options, { ...job, from: { ...from, ...version } }, signal);
  if (!unpacked.ok && (await verifyFile(target, file, signal)) !== undefined) return ok(undefined);
  // An unusable archive would be refused again; one that only lacked disk space is kept.
  if (unpacked.ok || unpacked.failure.reason === 'ModelUnusable') await rm(job.archive, { force: true });
  return unpacked;
}

async function ensureArchive(options: FetchOptions, job: ArchiveJob, signal: AbortSignal): Promise<Result<FileVersion | undefined>> {
  const { archive, from, file, target, room } = job;
  // Nothing is unpacked from an archive whose checksum was not compared, whatever its size.
  const present = await versionOfFile(archive, versionsOf(from), signal);
  if (present !== undefined) return ok(present);
  const directory = path.dirname(target);
  const there = await stat(`${archive}.${options.writer}.part`).catch(() => undefined);
  // A part is a sparse file.
  const partBytes = Math.min(from.sizeBytes, 512 * (there?.blocks ?? 0));
  const unpackedBytes = leastUnpackedBytes({ ...job, sizeBytes: from.sizeBytes });
  const both = await room.reserve(directory, () => from.sizeBytes - partBytes + unpackedBytes);
  if (!both.ok) return both;
  both.value[Symbol.dispose]();
  const reserved = await room.reserve(directory, () => unpackedBytes);
  if (!reserved.ok) return reserved;
  using _room = reserved.value;
  return await fetchFile(options, { file: { path: file.path, from }, target: archive, unpacked: { file, target } }, signal);
}

async function unpack(options: FetchOptions, job: ArchiveJob, signal: AbortSignal): Promise<Result<void>> {
  const { target, from, archive, room, unpackedBytes } = job;
  const into = hiddenPath(target, `${options.writer}.unpack`);
  const what = `${path.basename(new URL(from.url).pathname)} (unpacking)`;
  let reportedAt = -Infinity;
  const onBytes = (doneBytes: number): void => {
    if (performance.now() - reportedAt < PROGRESS_EVERY_MS) return;
    reportedAt = performance.now();
    options.onProgress({ what, doneBytes, ...(unpackedBytes === undefined ? {} : { totalBytes: unpackedBytes }) });
  };
  try {
    // A killed process may have left it.
    await rm(into, { recursive: true, force: true });
    await mkdir(into);
    const { unpackArchive } = await import('../archive/unpack-archive.ts');
    const unpacked = await unpackArchive({ ...from, archive, unpackedBytes, into, room, onBytes }, signal);
    if (!unpacked.ok) return unpacked;
    await placeDirectory(unpacked.value, target, async () => (await verifyFile(target, job.file, signal)) !== undefined);
    return ok(undefined);
  } finally {
    await rm(into, { recursive: true, force: true }).catch(() => undefined);
  }
}
