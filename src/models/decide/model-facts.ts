/** Derives the facts about a model that providers use from its file names and headers. Pure. */
import type { ModelFacts } from '../../providers/provider.ts';
import type { ModelId } from '../../schema/names.ts';
import type { Scalar } from './byte-cursor.ts';
import type { GgufHeader } from './parse-gguf-header.ts';

export interface ModelFiles {
  readonly id: ModelId;
  /** Path of the first shard. */
  readonly hostPath: string;
  /** The headers of all shards, in order. */
  readonly headers: readonly GgufHeader[];
  readonly sizeBytes: number;
  readonly projectorPath: string | undefined;
}

/** The architecture of a vision projector, which is not a model of its own. */
const PROJECTOR = 'clip';

export function isProjector(header: GgufHeader): boolean {
  return header.values.get('general.architecture') === PROJECTOR;
}

export function modelFacts(files: ModelFiles): ModelFacts {
  const values = files.headers[0]?.values ?? new Map<string, Scalar>();
  const architecture = values.get('general.architecture');
  const key = (name: string): string => `${String(architecture)}.${name}`;
  const number = <Name extends string>(fact: Name, name: string): { readonly [K in Name]?: number } => {
    const value = values.get(key(name));
    const found: { [K in Name]?: number } = {};
    if (typeof value === 'number') found[fact] = value;
    return found;
  };
  return {
    id: files.id,
    hostPath: files.hostPath,
    sizeBytes: files.sizeBytes,
    hasClassifier: files.headers.some((header) => header.hasClassifier),
    ...(typeof architecture === 'string' ? { architecture } : {}),
    ...number('poolingType', 'pooling_type'),
    ...number('trainedContext', 'context_length'),
    ...number('blockCount', 'block_count'),
    ...number('embeddingLength', 'embedding_length'),
    ...number('headCount', 'attention.head_count'),
    ...number('headCountKv', 'attention.head_count_kv'),
    ...number('keyLength', 'attention.key_length'),
    ...number('valueLength', 'attention.value_length'),
    ...(files.projectorPath === undefined ? {} : { projectorPath: files.projectorPath }),
  };
}

const SHARD = /-(\d{5})-of-(\d{5})\.gguf$/i;

/** Returns the file names of all shards of a split model, or just the given name if the model is not split. */
export function shardNames(name: string): readonly string[] {
  const match = SHARD.exec(name);
  const count = Number(match?.[2] ?? 1);
  if (match === null || count < 2 || count > 999) return [name];
  const stem = name.slice(0, match.index);
  return Array.from({ length: count }, (_, index) => `${stem}-${String(index + 1).padStart(5, '0')}-of-${match[2]}${name.slice(-5)}`);
}

/**
 * Returns the file name of the vision projector that belongs to a model: `mmproj*.gguf` in the same directory. If the directory has
 * several models, the projector must carry the model's name: `mmproj-<model>*.gguf` or `<model>.mmproj*.gguf`.
 */
export function projectorFor(name: string, siblings: readonly string[]): string | undefined {
  const projectors = siblings.filter((sibling) => /mmproj.*\.gguf$/i.test(sibling) && sibling !== name).toSorted();
  const stem = name.replace(SHARD, '').replace(/\.gguf$/i, '');
  const own = projectors.find((projector) => projector.startsWith(`mmproj-${stem}`) || projector.startsWith(`${stem}.mmproj`));
  if (own !== undefined) return own;
  const shards = new Set(shardNames(name));
  const others = siblings.filter((sibling) => /\.gguf$/i.test(sibling) && !shards.has(sibling) && !projectors.includes(sibling));
  return others.length === 0 ? projectors.find((projector) => projector.startsWith('mmproj')) : undefined;
}
