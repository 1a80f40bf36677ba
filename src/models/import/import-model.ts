/**
 * Imports a model of another tool, or any GGUF file, by hard link, reflink or copy. Computes its checksum first, so a
 * damaged download is noticed here. A hard link shares content with the original; both tools only replace files.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, realpath, rename, rm, stat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { homedir } from 'node:os';
import { readRegularFile } from '../../files/regular-file.ts';
import type { ModelFormat } from '../../providers/provider.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { ModelId } from '../../schema/words/names.ts';
import {
  huggingFaceModels,
  llamaCppModels,
  lmStudioModels,
  ollamaModel,
  type ForeignFile,
  type ForeignModel,
} from '../decide/foreign-models.ts';
import type { ForeignTool } from '../decide/parse-model-name.ts';
import type { Pin } from '../decide/pin.ts';
import type { ModelSources } from '../model-sources.ts';
import { failUnlessWritable, storageFailure } from '../download/disk-room.ts';
import { takeBytes, type TakeMethod } from '../download/place-file.ts';
import { hashFile } from '../download/verify-hash.ts';
import { createModelReader } from '../read-model.ts';
import { cacheHome, huggingFaceHome } from '../hub/hub-access.ts';

interface ImportOptions {
  /** Absolute path of the store. */
  readonly root: string;
  readonly pins: ModelSources['pins'];
  readonly formats: readonly ModelFormat[];
  readonly onFile: (name: string) => void;
}

export interface ImportedModel {
  readonly id: ModelId;
  /** `present`: the store already had it. */
  readonly how: TakeMethod | 'present';
  readonly sizeBytes: number;
}

export async function importModel(
  { root, pins, formats, onFile }: ImportOptions,
  model: FoundModel,
  signal: AbortSignal,
): Promise<Result<ImportedModel>> {
  const [first] = model.files;
  const id = ModelId.safeParse(`${model.directory}/${first.name}`);
  if (!id.success) return fail('stalled', 'ModelUnusable', `The name of "${first.path}" is too long for the model store; rename it`);
  const taken: Pin['files'] = [];
  let how: ImportedModel['how'] = 'present';
  try {
    for (const file of model.files) {
      onFile(file.name);
      const target = path.join(root, model.directory, file.name);
      const one = await takeFile(path.resolve(model.root, file.path), target, file, signal);
      if (!one.ok) return one;
      if (one.value.how !== 'present') how = one.value.how;
      const { sha256, sizeBytes } = one.value;
      taken.push({ path: `${model.directory}/${file.name}`, sha256, sizeBytes, from: { kind: 'import', tool: model.tool } });
    }
    const read = await createModelReader(root, formats).read(id.data, id.data);
    if (read.kind !== 'present') {
      for (const file of taken) if (how !== 'present') await rm(path.join(root, file.path), { force: true });
      return fail('stalled', 'ModelUnusable', read.kind === 'unusable' ? read.message : `The file of "${id.data}" has disappeared`);
    }
    await pins.write({ version: 1, id: id.data, files: taken, isGated: false });
    return ok({ id: id.data, how, sizeBytes: taken.reduce((sum, file) => sum + file.sizeBytes, 0) });
  } catch (error) {
    if (signal.aborted) throw error;
    return { ok: false, failure: storageFailure(root, error) };
  }
}

type TakenFile = Pick<ImportedModel, 'how' | 'sizeBytes'> & { readonly sha256: string };

async function takeFile(from: string, target: string, { sha256: expected }: ForeignFile, signal: AbortSignal): Promise<Result<TakenFile>> {
  // Tools link to their blobs, and a link would break with the directory of another user.
  const source = await realpath(from);
  const { size, ino, dev } = await stat(source);
  const there = await stat(target).catch(() => undefined);
  const isSame = there?.ino === ino && there.dev === dev;
  const part = `${target}.${randomUUID()}.import.part`;
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  try {
    const how = isSame ? 'present' : await takeBytes(source, part, size);
    if (typeof how !== 'string') return how;
    const sha256 = (await hashFile(isSame ? target : part, signal)).digest('hex');
    if (expected !== undefined && sha256 !== expected) {
      const message = `The SHA-256 of "${from}" is "${sha256}", not "${expected}"; download it again with its own tool`;
      return fail('stalled', 'ModelHashMismatch', message);
    }
    if (there !== undefined && !isSame && (await hashFile(target, signal)).digest('hex') === sha256)
      return ok({ how: 'present', sha256, sizeBytes: size });
    if (!isSame) await rename(part, target);
    return ok({ how, sha256, sizeBytes: size });
  } finally {
    await rm(part, { force: true });
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface FoundModel extends ForeignModel {
  /** Absolute path of the directory of the tool. */
  readonly root: string;
}

const DEPTH = 8;
const MAX_FILES = 20_000;

/** Returns the directories of each tool, in the order in which the tool looks. */
export function foreignDirectories(env: Environment): Readonly<Record<ForeignTool, readonly string[]>> {
  const home = env['HOME'] ?? homedir();
  const cache = cacheHome(env);
  const given = (...names: readonly string[]): readonly string[] =>
    names.flatMap((name) => env[name] ?? []).filter((value) => value !== '');
  return {
    ollama: [...given('OLLAMA_MODELS'), path.join(home, '.ollama/models'), '/usr/share/ollama/.ollama/models'],
    'lm-studio': [path.join(home, '.lmstudio/models')],
    'llama.cpp': [path.join(cache, 'llama.cpp'), path.join(home, 'Library/Caches/llama.cpp')],
    huggingface: [...given('LLAMA_CACHE', 'HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE'), path.join(huggingFaceHome(env), 'hub')],
  };
}

/** Finds the models that another tool keeps on this machine. Only reads. None if there is no such directory. */
export async function findForeignModels(tool: ForeignTool, root: string): Promise<readonly FoundModel[]> {
  return (await modelsOf(tool, root)).map((model) => ({ ...model, root }));
}

async function modelsOf(tool: ForeignTool, root: string): Promise<readonly ForeignModel[]> {
  if (tool === 'ollama') {
    const manifests = path.join(root, 'manifests');
    const found = await Promise.all(
      (await listFiles(manifests)).map(async (file) => ollamaModel(file, await readText(path.join(manifests, file)))),
    );
    return found.filter((model) => model !== undefined);
  }
  const files = await listFiles(root);
  if (tool === 'lm-studio') return lmStudioModels(files);
  if (tool === 'llama.cpp') return llamaCppModels(files);
  const repos = [...new Set(files.map((file) => file.split('/')[0] ?? ''))];
  const mains = await Promise.all(repos.map(async (repo) => [repo, (await readText(path.join(root, repo, 'refs/main'))).trim()] as const));
  const mainOf = new Map(mains.filter(([, commit]) => commit !== ''));
  return huggingFaceModels(files, (repo) => mainOf.get(repo));
}

/** Lists regular files and links to them, relative to the root. Skips hidden directories and partial downloads. */
async function listFiles(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(root, directory), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name.startsWith('.') || /\.incomplete$|-partial|downloadInProgress$/.test(entry.name) || found.length >= MAX_FILES)
        continue;
      const file = directory === '' ? entry.name : `${directory}/${entry.name}`;
      if (entry.isDirectory() && depth < DEPTH) await visit(file, depth + 1);
      else if (entry.isFile() || (entry.isSymbolicLink() && (await isFile(path.join(root, file))))) found.push(file);
    }
  };
  await visit('', 0);
  return found;
}

const readText = async (file: string): Promise<string> => await readRegularFile(file).catch(() => '');

const isFile = async (file: string): Promise<boolean> => (await stat(file).catch(() => undefined))?.isFile() === true;
