/**
 * How other tools lay out their models on disk, as lists of paths. Pure. Sources: ollama `manifest/paths.go` and
 * `server/images.go`; LM Studio's documentation "import models"; llama.cpp `common/download.cpp` and
 * `common/hf-cache.cpp`; huggingface_hub's documentation "understand caching".
 */
import { basename } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ggufStem, shardNames } from '../../schema/slot/model-providers.ts';
import type { ForeignTool } from './parse-model-name.ts';

type ForeignOrigin = ForeignTool | 'file';

export interface ForeignFile {
  readonly path: string;
  readonly name: string;
  readonly sha256: string | undefined;
}

export interface ForeignModel {
  readonly tool: ForeignOrigin;
  readonly label: string;
  readonly directory: string;
  /** The model or its shards in order, then its projector. */
  readonly files: readonly [ForeignFile, ...ForeignFile[]];
}

const Manifest = z.object({
  layers: z.array(z.object({ mediaType: z.string(), digest: z.string().regex(/^sha256[:-][0-9a-f]{64}$/) })),
});
const OLLAMA_TYPES = { model: 'application/vnd.ollama.image.model', projector: 'application/vnd.ollama.image.projector' } as const;

/** `path`: below `manifests/`, such as `registry.ollama.ai/library/llama3.2/3b`. Undefined if it is no GGUF model. */
export function ollamaModel(path: string, manifest: string): ForeignModel | undefined {
  const parsed = Manifest.safeParse(parseJson(manifest));
  const [host = '', namespace = '', name = '', tag = '', ...more] = path.split('/');
  if (!parsed.success || tag === '' || more.length > 0) return undefined;
  const layersOf = (type: string): readonly string[] =>
    parsed.data.layers.filter(({ mediaType }) => mediaType === type).map(({ digest }) => digest.slice('sha256:'.length));
  const stem = `${name}-${tag}`;
  const models = layersOf(OLLAMA_TYPES.model);
  const [first, ...others] = models;
  // Only models of a single layer are GGUF.
  if (first === undefined || others.length > 0) return undefined;
  const blob = (sha256: string, fileName: string): ForeignFile => ({ path: `blobs/sha256-${sha256}`, name: fileName, sha256 });
  const projectors = layersOf(OLLAMA_TYPES.projector).map((sha256) => blob(sha256, `mmproj-${stem}.gguf`));
  const where = host === 'registry.ollama.ai' ? (namespace === 'library' ? '' : `${namespace}/`) : `${host}/${namespace}/`;
  return {
    tool: 'ollama',
    label: `${where}${name}:${tag}`,
    directory: storeDirectory('ollama', `${where}${name}/${tag}`),
    files: [blob(first, `${stem}.gguf`), ...projectors.slice(0, 1)],
  };
}

/** `paths`: such as `publisher/model/file.gguf`. Ignores files at the top, like LM Studio. */
export function lmStudioModels(paths: readonly string[]): readonly ForeignModel[] {
  return groupByModel(
    'lm-studio',
    paths.filter((path) => path.split('/').length >= 3),
    (path) => path.split('/').slice(0, -1).join('/'),
  );
}

/** The old cache of llama.cpp: `owner_repo_file.gguf` in one directory. */
export function llamaCppModels(paths: readonly string[]): readonly ForeignModel[] {
  return groupByModel(
    'llama.cpp',
    paths.filter((path) => !path.includes('/')),
    () => '',
  );
}

/** The cache of the Hub: `models--owner--repo/snapshots/commit/file.gguf`. Uses the commit of `refs/main`. */
export function huggingFaceModels(paths: readonly string[], mainOf: (repo: string) => string | undefined): readonly ForeignModel[] {
  const current = paths.filter((path) => {
    const [repo = '', snapshots = '', commit = '', ...file] = path.split('/');
    if (!repo.startsWith('models--') || snapshots !== 'snapshots' || file.length === 0) return false;
    return commit === (mainOf(repo) ?? commit);
  });
  return groupByModel('huggingface', current, (path) => {
    const [repo = '', , , ...file] = path.split('/');
    return [...repo.split('--').slice(1), ...file.slice(0, -1)].join('/');
  });
}

/** `siblings`: names of all files beside the one that the user named. */
export function namedModel(name: string, siblings: readonly string[]): ForeignModel | undefined {
  return groupByModel('file', siblings, () => '').find(({ files }) => files.some((file) => file.path === name));
}

/** Groups shards, and adds the projector of a directory to its models. */
function groupByModel(tool: ForeignOrigin, paths: readonly string[], labelOf: (path: string) => string): readonly ForeignModel[] {
  const ggufs = paths.filter((path) => /\.gguf$/i.test(path)).toSorted();
  const all = new Set(ggufs);
  return ggufs.flatMap((path): ForeignModel[] => {
    const name = basename(path);
    const above = path.slice(0, path.length - name.length);
    const shards = shardNames(name);
    const isModel = !/mmproj/i.test(name) && shards[0] === name && shards.every((shard) => all.has(above + shard));
    if (!isModel) return [];
    const projector = ggufs.find((other) => other === above + basename(other) && /mmproj/i.test(basename(other)));
    const label = [labelOf(path), name].filter((part) => part !== '').join('/');
    const file = (each: string): ForeignFile => ({ path: above + each, name: cleanName(each), sha256: undefined });
    const extra = projector === undefined ? [] : [file(basename(projector))];
    const directory = storeDirectory(tool, [labelOf(path), ggufStem(name)].filter((part) => part !== '').join('/'));
    return [{ tool, label, directory, files: [file(name), ...shards.slice(1).map(file), ...extra] }];
  });
}

const storeDirectory = (tool: ForeignOrigin, path: string): string => [tool, ...path.split('/').map(cleanName)].join('/');

/** Only characters that the store allows, and neither "." nor "..". */
function cleanName(name: string): string {
  const clean = name.replaceAll(/[^A-Za-z0-9_.:@+-]/g, '-');
  return /^\.{0,2}$/.test(clean) ? `_${clean}` : clean;
}
