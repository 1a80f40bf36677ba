/** Lists, verifies and removes the files of a model, whatever its name. */
import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { succeeds } from '../files/write-file.ts';
import { codeOf } from '../platform/error-text.ts';
import type { ModelFormat } from '../providers/provider.ts';
import type { ModelId } from '../schema/words/names.ts';
import { bytesOf, readFileList } from './archive/file-list.ts';
import type { ArchiveFormat, CatalogueFile } from './catalogue/catalogue.ts';
import { parseHubName } from './decide/parse-model-name.ts';
import { loadDemoToolbox } from './demo-toolbox.ts';
import type { ModelSources } from './model-sources.ts';
import { archivePath } from './download/fetch-archive.ts';
import { removePart } from './download/resume-part.ts';
import { hashFile } from './download/verify-hash.ts';
import { createHash } from 'node:crypto';

export interface ModelFile {
  readonly path: string;
  readonly sha256: string | undefined;
  /** `sha256` is its checksum then, and `path` the directory of its files. */
  readonly archive?: ArchiveFormat;
}

export interface KnownModels {
  readonly root: string;
  readonly sources: ModelSources;
  readonly formats: readonly ModelFormat[];
}

/** The files of a model, even a missing one. An unlisted file stands for itself and its shards. */
export async function filesOf({ root, sources, formats }: KnownModels, id: ModelId): Promise<readonly ModelFile[]> {
  const pin = await sources.pins.read(id);
  if (pin !== undefined) return pin.files.map((file) => ({ path: file.path, sha256: file.sha256 }));
  const entry = await sources.known(id);
  if (entry !== undefined) return Promise.all(entry.files.map(describeFile));
  if (parseHubName(id).kind !== 'other') return [];
  const unknown = (file: string): ModelFile => ({ path: file, sha256: undefined });
  const name = path.basename(id);
  const names = await readdir(path.join(root, id)).catch(() => undefined);
  if (names !== undefined) {
    const isModel = formats.some((format) => format.recognize({ name, names }) === 'model');
    return isModel ? names.toSorted().map((each) => unknown(path.join(id, each))) : [];
  }
  const format = formats.find((each) => each.recognize({ name }) !== undefined);
  return (format?.filesOf(name) ?? [name]).map((each) => unknown(path.join(path.dirname(id), each)));
}

async function describeFile({ path: file, from, archive }: CatalogueFile): Promise<ModelFile> {
  const of = archive === undefined ? {} : { archive: archive.format };
  if (from.kind === 'url') return { path: file, sha256: from.sha256.toLowerCase(), ...of };
  const { encodeDemoFile } = await loadDemoToolbox();
  return { path: file, sha256: createHash('sha256').update(encodeDemoFile(file)).digest('hex') };
}

export async function storedBytes(root: string, { path: file, sha256, archive }: ModelFile): Promise<number | undefined> {
  if (archive !== undefined) {
    const list = await readFileList(path.join(root, file), sha256 ?? '');
    return list === undefined ? undefined : bytesOf(list);
  }
  const facts = await stat(path.join(root, file)).catch(() => undefined);
  return facts?.isFile() === true ? facts.size : undefined;
}

export interface VerifiedFile extends ModelFile {
  /** `unknown`: there is no checksum to compare with. */
  readonly result: 'matches' | 'differs' | 'missing' | 'unknown';
  readonly digest: string | undefined;
}

/** One result for a correct archive, otherwise one for each incorrect file. */
export async function verifyModelFiles(root: string, file: ModelFile, signal: AbortSignal): Promise<readonly VerifiedFile[]> {
  if (file.archive === undefined) return [await verifyModelFile(root, file, signal)];
  const list = await readFileList(path.join(root, file.path), file.sha256 ?? '');
  if (list === undefined) return [{ ...file, result: 'missing', digest: undefined }];
  const wrong: VerifiedFile[] = [];
  for (const { path: name, sha256 } of list.files) {
    const each = await verifyModelFile(root, { path: path.join(file.path, name), sha256 }, signal);
    if (each.result !== 'matches') wrong.push(each);
  }
  return wrong.length > 0 ? wrong : [{ ...file, result: 'matches', digest: undefined }];
}

async function verifyModelFile(root: string, file: ModelFile, signal: AbortSignal): Promise<VerifiedFile> {
  try {
    const digest = (await hashFile(path.join(root, file.path), signal)).digest('hex');
    const result = file.sha256 === undefined ? 'unknown' : digest === file.sha256 ? 'matches' : 'differs';
    return { ...file, result, digest };
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return { ...file, result: 'missing', digest: undefined };
    throw error;
  }
}

/** Removes everything of a model, except files of other names. Undefined if there was nothing. */
export async function removeModel(known: KnownModels, id: ModelId): Promise<number | undefined> {
  const { root, sources } = known;
  const pins = await sources.pins.list();
  const ofOthers = new Set(pins.filter((pin) => pin.id !== id).flatMap((pin) => pin.files.map((file) => file.path)));
  const files = (await filesOf(known, id)).filter((file) => !ofOthers.has(file.path));
  let removedBytes: number | undefined = pins.some((pin) => pin.id === id) ? 0 : undefined;
  for (const file of files) {
    const full = path.join(root, file.path);
    const size = await storedBytes(root, file);
    // Removes incomplete directories as well.
    await rm(full, { force: true, recursive: file.archive !== undefined });
    if (size !== undefined) removedBytes = (removedBytes ?? 0) + size;
    if (file.archive === undefined) await removePartsOf(full);
    else await removeArchive(full, file.archive);
  }
  await sources.pins.remove(id);
  for (const { path: file } of files) await removeEmptyAbove(root, path.dirname(file));
  return removedBytes;
}

async function removePartsOf(target: string): Promise<void> {
  const directory = path.dirname(target);
  const names = await readdir(directory).catch(() => []);
  const own = names.filter((name) => name.startsWith(`${path.basename(target)}.`) && name.endsWith('.part'));
  for (const name of own) await removePart(path.join(directory, name));
}

async function removeArchive(directory: string, format: ArchiveFormat): Promise<void> {
  const archive = archivePath(directory, format);
  await rm(archive, { force: true });
  await removePartsOf(archive);
  const above = path.dirname(directory);
  const names = await readdir(above).catch(() => []);
  const hidden = names.filter((name) => name.startsWith(`.${path.basename(directory)}.`) && name.endsWith('.part'));
  for (const name of hidden) await rm(path.join(above, name), { force: true, recursive: true });
}

async function removeEmptyAbove(root: string, directory: string): Promise<void> {
  for (let each = directory; each !== '.' && each !== ''; each = path.dirname(each)) {
    if (!(await succeeds(rmdir(path.join(root, each))))) return;
  }
}
