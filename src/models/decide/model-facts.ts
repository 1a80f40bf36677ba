/** Derives the facts about a model that providers use from its file names and headers. Pure. */
import type { ModelFacts } from '../../providers/provider.ts';
import type { Scalar } from './byte-cursor.ts';
import type { GgufHeader } from './parse-gguf-header.ts';

export interface ModelFiles extends Pick<ModelFacts, 'id' | 'hostPath' | 'sizeBytes' | 'projectorPath'> {
  /** The headers of all shards, in order. */
  readonly headers: readonly GgufHeader[];
}

/** The architecture of a vision projector, which is not a model of its own. */
const PROJECTOR = 'clip';

export function isProjector(header: GgufHeader): boolean {
  return header.values.get('general.architecture') === PROJECTOR;
}

export function modelFacts({ headers, ...files }: ModelFiles): ModelFacts {
  const values = headers[0]?.values ?? new Map<string, Scalar>();
  const architecture = values.get('general.architecture');
  const number = (name: string): number | undefined => {
    const value = values.get(`${String(architecture)}.${name}`);
    return typeof value === 'number' ? value : undefined;
  };
  return {
    ...files,
    hasClassifier: headers.some((header) => header.hasClassifier),
    architecture: typeof architecture === 'string' ? architecture : undefined,
    poolingType: number('pooling_type'),
    trainedContext: number('context_length'),
    blockCount: number('block_count'),
    embeddingLength: number('embedding_length'),
    embeddingLengthOut: number('embedding_length_out'),
    headCount: number('attention.head_count'),
    headCountKv: number('attention.head_count_kv'),
    keyLength: number('attention.key_length'),
    valueLength: number('attention.value_length'),
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
