/**
 * Takes a file from another model of the same store, where one has the same content under another name: a model that was pulled by its name on the Hub, and is then named by
 * its id in the catalogue. Its content is hashed before it appears, as that of a download.
 */
import { mkdir, rename, rm, stat, constants, copyFile, link, open } from 'node:fs/promises';
import path from 'node:path';
import { DEMO_CATALOGUE, type Catalogue, type CatalogueFile, type Download } from '../catalogue/catalogue.ts';
import type { Pins } from '../pins.ts';
import { failUnlessWritable, createDiskRoom } from './disk-room.ts';
import type { FetchOptions } from './fetch-file.ts';
import { hashFile } from './ordered-hash.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { Result } from '../../schema/words/failure.ts';

interface ReuseFile extends Pick<FetchOptions, 'writer' | 'onProgress'> {
  /** Absolute path of the store. */
  readonly root: string;
  readonly file: CatalogueFile;
  /** Absolute path. */
  readonly target: string;
  readonly catalogue?: Catalogue;
  readonly sources?: { readonly pins: Pick<Pins, 'list'> };
}

/** Resolves to whether the file is in its place now. */
export async function reuseFile(options: ReuseFile, signal: AbortSignal): Promise<boolean> {
  const { file, root } = options;
  if (file.from.kind !== 'url' || file.archive !== undefined) return false;
  for (const candidate of await pathsWith(file.from, options))
    if (candidate !== file.path && (await takeFrom(path.join(root, candidate), options, file.from, signal))) return true;
  return false;
}

/** Returns the paths, relative to the root of the store, of all files that are said to have this content. */
async function pathsWith({ sha256, sizeBytes }: Download, { catalogue = DEMO_CATALOGUE, sources }: ReuseFile): Promise<readonly string[]> {
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

async function takeFrom(
  source: string,
  { target, writer, onProgress }: ReuseFile,
  { sha256, sizeBytes }: Download,
  signal: AbortSignal,
): Promise<boolean> {
  const facts = await stat(source).catch(() => undefined);
  if (facts?.isFile() !== true || facts.size !== sizeBytes) return false;
  onProgress({ what: `${path.basename(target)} (comparing a copy in the store)`, doneBytes: 0, totalBytes: sizeBytes });
  const part = `${target}.${writer}.reuse.part`;
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  try {
    await rm(part, { force: true });
    const taken = await takeBytes(source, part, sizeBytes);
    if (typeof taken !== 'string') return false;
    if ((await hashFile(part, signal)).digest('hex') !== sha256.toLowerCase()) return false;
    await rename(part, target);
    return true;
  } finally {
    await rm(part, { force: true });
  }
}

/** Takes the content of a file on this machine without fetching it: by hard link or reflink, which take no room, else by copy. */

export type TakeMethod = 'hard link' | 'reflink' | 'copy';

/** The kernel forbids most users to link to files of others (`fs.protected_hardlinks`); those are cloned or copied. */
export async function takeBytes(source: string, part: string, sizeBytes: number): Promise<Result<never> | TakeMethod> {
  const linked = await link(source, part).then(
    () => true,
    () => false,
  );
  if (linked) return 'hard link';
  const cloned = await copyFile(source, part, constants.COPYFILE_FICLONE_FORCE).then(
    () => true,
    () => false,
  );
  if (cloned) return 'reflink';
  await rm(part, { force: true });
  const room = await createDiskRoom().reserve(path.dirname(part), () => sizeBytes);
  if (!room.ok) return room;
  await copyFile(source, part);
  const handle = await open(part, 'r');
  await handle.sync().catch((error: unknown) => {
    if (codeOf(error) !== 'EINVAL') throw error;
  });
  await handle.close();
  return 'copy';
}
