/** Finds the models that Ollama, LM Studio, llama.cpp and Hugging Face's tools keep on this machine. Only reads. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { huggingFaceModels, llamaCppModels, lmStudioModels, ollamaModel, type ForeignModel } from '../decide/foreign-models.ts';
import type { ForeignTool } from '../decide/foreign-tools.ts';
import { cacheHome, huggingFaceHome } from '../hub/hub-access.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A model with the absolute paths of its files. */
export interface FoundModel extends ForeignModel {
  /** Absolute path of the directory of the tool. */
  readonly root: string;
}

const DEPTH = 8;
const MAX_FILES = 20_000;

/** Returns where each tool keeps its models, in the order in which the tool itself looks. */
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

export async function findForeignModels(tool: ForeignTool, root: string): Promise<readonly FoundModel[]> {
  if (!(await isDirectory(root))) return [];
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

/** Returns the paths of all regular files, and of links to such files, relative to the root. Hidden directories and partial downloads are left out. */
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

/** Empty if it cannot be read. */
async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}

async function isDirectory(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isDirectory() === true;
}

async function isFile(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isFile() === true;
}
