/** Lists, verifies and removes the files of a model, whatever its name, and what abandoned downloads have left. */
import { lstat, readdir, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { succeeds } from '../files/write-file.ts';
import { codeOf } from '../platform/error-text.ts';
import type { ModelFormat } from '../providers/provider.ts';
import type { ModelId } from '../schema/words/names.ts';
import { bytesOf, readFileList } from './archive/file-list.ts';
import { versionsOf, type ArchiveFormat, type CatalogueFile } from './catalogue/catalogue.ts';
import { parseHubName } from './decide/parse-model-name.ts';
import { loadDemoToolbox, type ModelSources } from './model-sources.ts';
import { archivePath } from './download/fetch-archive.ts';
import { removePart } from './download/resume-part.ts';
import { hashFile } from './download/verify-hash.ts';
import { createHash } from 'node:crypto';

export interface ModelFile {
  readonly path: string;
  readonly sha256: string | undefined;
  /** Other versions that are accepted. */
  readonly others?: readonly string[];
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
  return (format?.filesOf?.(name) ?? [name]).map((each) => unknown(path.join(path.dirname(id), each)));
}

async function describeFile({ path: file, from, archive }: CatalogueFile): Promise<ModelFile> {
  const of = archive === undefined ? {} : { archive: archive.format };
  if (from.kind === 'url') {
    const [sha256, ...others] = versionsOf(from).map((version) => version.sha256);
    return { path: file, sha256, others, ...of };
  }
  const { encodeDemoFile } = await loadDemoToolbox();
  return { path: file, sha256: createHash('sha256').update(encodeDemoFile(file)).digest('hex') };
}

const hashesOf = ({ sha256, others = [] }: ModelFile): readonly string[] => (sha256 === undefined ? others : [sha256, ...others]);

export async function storedBytes(root: string, model: ModelFile): Promise<number | undefined> {
  const { path: file, archive } = model;
  if (archive !== undefined) {
    const list = await readFileList(path.join(root, file), hashesOf(model));
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
  const list = await readFileList(path.join(root, file.path), hashesOf(file));
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
    const result = file.sha256 === undefined ? 'unknown' : hashesOf(file).includes(digest) ? 'matches' : 'differs';
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
  for (const part of await listParts(target)) await removePart(part);
}

const listParts = async (target: string): Promise<readonly string[]> => await pathsBeside(target, `${path.basename(target)}.`);

async function pathsBeside(target: string, prefix: string): Promise<readonly string[]> {
  const directory = path.dirname(target);
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => name.startsWith(prefix) && name.endsWith('.part')).map((name) => path.join(directory, name));
}

async function removeArchive(directory: string, format: ArchiveFormat): Promise<void> {
  const archive = archivePath(directory, format);
  await rm(archive, { force: true });
  await removePartsOf(archive);
  for (const hidden of await pathsBeside(directory, `.${path.basename(directory)}.`)) await rm(hidden, { force: true, recursive: true });
}

async function removeEmptyAbove(root: string, directory: string): Promise<void> {
  for (let each = directory; each !== '.' && each !== ''; each = path.dirname(each)) {
    if (!(await succeeds(rmdir(path.join(root, each))))) return;
  }
}

export interface Leftover {
  readonly path: string;
  readonly sizeBytes: number;
}

/** Retried downloads change their part far more often. */
const ABANDONED_MS = 24 * 3_600_000;
const DEPTH = 8;
/** Parts with their journals, and temporary files of `writeFileAtomically`. */
const LEFTOVER = /\.part(?:\.journal)?$|^\..+\.[0-9a-f]{8}\.tmp$/;

/** Finds abandoned parts and journals. `now`: Unix milliseconds, by the clock of the files. */
export async function findLeftovers(root: string, now: number): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(root, directory), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory() && entry.name.endsWith('.part')) {
        const { sizeBytes, mtimeMs } = await measure(path.join(root, file));
        if (now - mtimeMs > ABANDONED_MS) found.push({ path: file, sizeBytes });
      } else if (entry.isDirectory() && depth < DEPTH) await visit(file, depth + 1);
      if (!entry.isFile() || !LEFTOVER.test(entry.name)) continue;
      const facts = await stat(path.join(root, file)).catch(() => undefined);
      // Sparse files take less disk space than their size.
      if (facts !== undefined && now - facts.mtimeMs > ABANDONED_MS)
        found.push({ path: file, sizeBytes: Math.min(facts.size, 512 * facts.blocks) });
    }
  };
  await visit('', 0);
  return found;
}

async function measure(directory: string): Promise<{ readonly sizeBytes: number; readonly mtimeMs: number }> {
  let sizeBytes = 0;
  let { mtimeMs } = await stat(directory);
  for (const name of await readdir(directory, { recursive: true }).catch(() => [])) {
    const facts = await lstat(path.join(directory, name)).catch(() => undefined);
    sizeBytes += facts?.isFile() === true ? facts.size : 0;
    mtimeMs = Math.max(mtimeMs, facts?.mtimeMs ?? 0);
  }
  return { sizeBytes, mtimeMs };
}

export async function removeLeftovers(root: string, leftovers: readonly Leftover[]): Promise<void> {
  for (const { path: file } of leftovers) await rm(path.join(root, file), { force: true, recursive: true });
}

/** Forgets pins whose files are gone. */
export async function forgetLostModels(root: string, { pins }: Pick<ModelSources, 'pins'>): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const pin of await pins.list()) {
    const present = await Promise.all(pin.files.map(async (file) => succeeds(stat(path.join(root, file.path)))));
    const parts = await Promise.all(pin.files.map(async (file) => listParts(path.join(root, file.path))));
    if (present.includes(true) || parts.flat().length > 0) continue;
    await pins.remove(pin.id);
    lost.push(pin.id);
  }
  return lost;
}
