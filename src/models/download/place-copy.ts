/**
 * Reuses a file that the store already has under another name, such as a model of the Hub that the catalogue lists as
 * well.
 */
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { DEMO_CATALOGUE, type Catalogue, type CatalogueFile, type Download } from '../catalogue/catalogue.ts';
import type { Pins } from '../pins.ts';
import { failUnlessWritable } from './disk-room.ts';
import type { FetchOptions } from './fetch-file.ts';
import { takeBytes } from './place-file.ts';
import { isFileWith } from './verify-hash.ts';

interface ReuseFile extends Pick<FetchOptions, 'writer' | 'onProgress'> {
  /** Absolute path of the store. */
  readonly root: string;
  readonly file: CatalogueFile;
  /** Absolute path. */
  readonly target: string;
  readonly catalogue?: Catalogue;
  readonly sources?: { readonly pins: Pick<Pins, 'list'> };
}

/** Resolves to true if the file is in its place now. Its checksum was compared. */
export async function reuseFile(options: ReuseFile, signal: AbortSignal): Promise<boolean> {
  const { file, root } = options;
  if (file.from.kind !== 'url' || file.archive !== undefined) return false;
  for (const candidate of await pathsWith(file.from, options))
    if (candidate !== file.path && (await takeFrom(path.join(root, candidate), options, file.from, signal))) return true;
  return false;
}

/** Returns the paths, relative to the store, of files that should have this content. */
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

async function takeFrom(source: string, { target, writer, onProgress }: ReuseFile, from: Download, signal: AbortSignal): Promise<boolean> {
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
    if (typeof taken !== 'string') return false;
    if (!(await isFileWith(part, from, signal))) return false;
    await rename(part, target);
    return true;
  } finally {
    await rm(part, { force: true });
  }
}
