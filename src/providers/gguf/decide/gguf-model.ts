/** What a GGUF file says about its model: from its header, and from the names of the files beside it. Pure. */
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { ggufStem, shardNames } from '../../../schema/gguf-names.ts';
import type { Scalar } from './byte-cursor.ts';
import type { GgufHeader } from './parse-gguf-header.ts';

const Contents = z.object({
  /** `general.architecture`. */
  architecture: z.string().optional(),
  /** `<arch>.pooling_type`: 0 none, 1 mean, 2 cls, 3 last, 4 rank. */
  poolingType: z.number().optional(),
  /** Whether the file has a classifier head (`cls*` tensors). */
  hasClassifier: z.boolean().optional(),
  /** `<arch>.context_length`, in tokens. */
  trainedContext: z.number().optional(),
  blockCount: z.number().optional(),
  embeddingLength: z.number().optional(),
  /** GGUF `<arch>.embedding_length_out`: the length of the vectors that it makes, where it is another one. */
  embeddingLengthOut: z.number().optional(),
  headCount: z.number().optional(),
  /** The mean over all layers. */
  headCountKv: z.number().optional(),
  /** `<arch>.attention.key_length` and `value_length`. Default: the embedding length divided by the number of heads. */
  keyLength: z.number().optional(),
  valueLength: z.number().optional(),
  /** The vision projector: the path of its file relative to the directory of the model. */
  projector: z.string().optional(),
});
export type GgufContents = Readonly<z.output<typeof Contents>>;

/** A model as this provider sees it. Whatever is not known is absent. */
export type GgufModel = Pick<ModelFacts, 'id' | 'hostPath' | 'sizeBytes'> & GgufContents;

/** Also for a model of another provider, or with contents that were written by another version: nothing is known of them then. */
export function ggufModel({ id, hostPath, sizeBytes, provider, contents }: ModelFacts): GgufModel {
  const known = provider === 'gguf' ? Contents.safeParse(contents).data : undefined;
  return { ...known, id, hostPath, sizeBytes };
}

/** The architecture of a vision projector, which is not a model of its own. */
const PROJECTOR = 'clip';

export function isProjector(header: GgufHeader): boolean {
  return header.values.get('general.architecture') === PROJECTOR;
}

/** `headers` are those of all shards, in order. */
export function ggufContents(headers: readonly GgufHeader[], projector: string | undefined): GgufContents {
  const values = headers[0]?.values ?? new Map<string, Scalar>();
  const architecture = values.get('general.architecture');
  const number = (name: string): number | undefined => {
    const value = values.get(`${String(architecture)}.${name}`);
    return typeof value === 'number' ? value : undefined;
  };
  return {
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
    projector,
  };
}

/** Adds the projector among the files of a model: as the catalogue lists them, its first file is the model. */
export function withListedProjector(
  stated: ModelContents | undefined,
  [first = '', ...more]: readonly string[],
): ModelContents | undefined {
  const directory = first.slice(0, first.lastIndexOf('/') + 1);
  const listed = more.find((file) => IS_PROJECTOR.test(file) && file.startsWith(directory));
  return listed === undefined ? stated : { ...stated, projector: listed.slice(directory.length) };
}

const IS_PROJECTOR = /mmproj[^/]*\.gguf$/i;

/** Whether the name says that the file is a projector. */
export function isProjectorName(name: string): boolean {
  return /mmproj/i.test(name);
}

/**
 * Returns the file name of the vision projector that belongs to a model: `mmproj*.gguf` in the same directory. If the directory has
 * several models, the projector must carry the model's name: `mmproj-<model>*.gguf` or `<model>.mmproj*.gguf`.
 */
export function projectorFor(name: string, siblings: readonly string[]): string | undefined {
  const projectors = siblings.filter((sibling) => IS_PROJECTOR.test(sibling) && sibling !== name).toSorted();
  const stem = ggufStem(name);
  const own = projectors.find((projector) => projector.startsWith(`mmproj-${stem}`) || projector.startsWith(`${stem}.mmproj`));
  if (own !== undefined) return own;
  const shards = new Set(shardNames(name));
  const others = siblings.filter((sibling) => /\.gguf$/i.test(sibling) && !shards.has(sibling) && !projectors.includes(sibling));
  return others.length === 0 ? projectors.find((projector) => projector.startsWith('mmproj')) : undefined;
}
