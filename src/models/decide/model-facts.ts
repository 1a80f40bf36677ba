/** What a model's files say, put together as the facts providers decide with. Pure. */
import type { ModelFacts } from '../../providers/provider.ts';
import type { ModelId } from '../../schema/names.ts';
import type { Scalar } from './byte-cursor.ts';
import type { GgufHeader } from './gguf-header.ts';

export interface ModelFiles {
  readonly id: ModelId;
  /** The first part's path. */
  readonly hostPath: string;
  /** All parts, in their order. */
  readonly headers: readonly GgufHeader[];
  readonly sizeBytes: number;
  readonly projectorPath: string | undefined;
}

/** The architecture of a vision projector, which is no model by itself. */
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

/** The names of all parts of a model that is split, the given one among them; just the name when it is not. */
export function shardNames(name: string): readonly string[] {
  const match = SHARD.exec(name);
  const count = Number(match?.[2] ?? 1);
  if (match === null || count < 2 || count > 999) return [name];
  const stem = name.slice(0, match.index);
  return Array.from({ length: count }, (_, index) => `${stem}-${String(index + 1).padStart(5, '0')}-of-${match[2]}${name.slice(-5)}`);
}

/**
 * The vision projector that belongs to a model: `mmproj*.gguf` beside it. Where several models lie in one directory only one that
 * carries the model's name does: `mmproj-<model>*.gguf` or `<model>.mmproj*.gguf`.
 */
export function projectorFor(name: string, siblings: readonly string[]): string | undefined {
  const projectors = siblings.filter((sibling) => /mmproj.*\.gguf$/i.test(sibling) && sibling !== name).toSorted();
  const stem = name.replace(SHARD, '').replace(/\.gguf$/i, '');
  const own = projectors.find((projector) => projector.startsWith(`mmproj-${stem}`) || projector.startsWith(`${stem}.mmproj`));
  if (own !== undefined) return own;
  const parts = new Set(shardNames(name));
  const others = siblings.filter((sibling) => /\.gguf$/i.test(sibling) && !parts.has(sibling) && !projectors.includes(sibling));
  return others.length === 0 ? projectors.find((projector) => projector.startsWith('mmproj')) : undefined;
}
