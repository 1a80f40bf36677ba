/** What a GGUF file says about its model: from its header, and from the names of the files beside it. Pure. */
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { ggufStem, shardNames } from '../../../schema/slot/model-providers.ts';
import { headerValues, layerMemory, type HeaderValues } from './layer-memory.ts';
import type { GgufHeader, TensorTotals } from './parse-gguf-header.ts';

const KeysAndValues = z.object({ keys: z.number(), values: z.number() });
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
  /** `<arch>.embedding_length_out`: the length of the vectors that it makes, where it is another one. */
  embeddingLengthOut: z.number().optional(),
  /** The largest of all layers, and of the experts that compute one token together. */
  feedForwardLength: z.number().optional(),
  headCount: z.number().optional(),
  /** The mean over all layers. */
  headCountKv: z.number().optional(),
  /** `<arch>.attention.key_length` and `value_length`. Default: the embedding length divided by the number of heads. */
  keyLength: z.number().optional(),
  valueLength: z.number().optional(),
  /** What each token and each sequence costs. Absent where only the counts above are known. */
  layers: z
    .object({ whole: KeysAndValues, window: KeysAndValues.extend({ tokens: z.number() }).optional(), stateBytes: z.number() })
    .optional(),
  /** Number of experts, and how many of them compute a token. */
  expertCount: z.number().optional(),
  expertUsedCount: z.number().optional(),
  expertBytes: z.number().optional(),
  /** Number of tokens in the vocabulary. */
  vocabularySize: z.number().optional(),
  /** Bytes of the tensors that stay in the memory of the host. */
  inputBytes: z.number().optional(),
  hasOutput: z.boolean().optional(),
  /** Number of weights. */
  parameters: z.number().optional(),
  /** As in the names of files: `Q4_K_M`. */
  quantization: z.string().optional(),
  /** Whether it has a chat template, and whether that template knows tools and thinking. */
  chatTemplate: z.boolean().optional(),
  tools: z.boolean().optional(),
  thinking: z.boolean().optional(),
  /** The vision projector: the path of its file relative to the directory of the model. */
  projector: z.string().optional(),
  projectorBytes: z.number().optional(),
});
export type GgufContents = Readonly<z.output<typeof Contents>>;

/** A model as this provider sees it. Whatever is not known is absent. */
export type GgufModel = Pick<ModelFacts, 'id' | 'hostPath' | 'sizeBytes'> & GgufContents;

/** Also for a model of another provider, or with contents that were written by another version: nothing is known of them then. */
export function ggufModel({ id, hostPath, sizeBytes, provider, contents }: ModelFacts): GgufModel {
  const known = provider === 'gguf' ? parseContents(contents) : undefined;
  return { ...known, id, hostPath, sizeBytes };
}

/** Undefined for contents of another provider, or of another version. */
export function parseContents(contents: ModelContents | undefined): GgufContents | undefined {
  return Contents.safeParse(withoutOddValues(contents)).data;
}

/**
 * A header may state any number, also one that no model can have: what is computed from the others must stay a number of bytes. A projector outside the directory of the
 * model is none.
 */
function withoutOddValues(contents: ModelContents | undefined): ModelContents {
  const isOdd = (key: string, value: unknown): boolean => {
    if (key === 'projector') return typeof value !== 'string' || value.startsWith('/') || value.split('/').includes('..');
    return typeof value === 'number' && (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER) || (key === 'headCount' && value === 0));
  };
  return Object.fromEntries(Object.entries(contents ?? {}).filter(([key, value]) => !isOdd(key, value)));
}

/** The architecture of a vision projector, which is not a model of its own. */
const PROJECTOR = 'clip';

export function isProjector(header: GgufHeader): boolean {
  return header.values.get('general.architecture') === PROJECTOR;
}

/** `headers` are those of all shards, in order: the first has the metadata. */
export function ggufContents(headers: readonly GgufHeader[], projector: Projector | undefined): GgufContents {
  const [first] = headers;
  if (first === undefined) return {};
  const header = headerValues(first);
  const fileType = first.values.get('general.file_type');
  const sum = (bytes: (tensors: TensorTotals) => number): number => headers.reduce((total, { tensors }) => total + bytes(tensors), 0);
  return {
    architecture: header.text('general.architecture'),
    poolingType: header.count('pooling_type'),
    hasClassifier: headers.some(({ tensors }) => tensors.hasClassifier),
    trainedContext: header.count('context_length'),
    blockCount: header.count('block_count'),
    embeddingLength: header.count('embedding_length'),
    embeddingLengthOut: header.count('embedding_length_out'),
    feedForwardLength: feedForwardLength(header),
    headCount: header.largest('attention.head_count'),
    headCountKv: header.mean('attention.head_count_kv'),
    keyLength: header.count('attention.key_length'),
    valueLength: header.count('attention.value_length'),
    layers: layerMemory(header),
    expertCount: positive(header.count('expert_count')),
    expertUsedCount: positive(header.count('expert_used_count')),
    expertBytes: positive(sum((tensors) => tensors.expertBytes)),
    vocabularySize: first.vocabularySize ?? header.count('vocab_size'),
    inputBytes: sum((tensors) => tensors.inputBytes),
    hasOutput: headers.some(({ tensors }) => tensors.hasOutput),
    parameters: sum((tensors) => tensors.parameters),
    quantization: typeof fileType === 'number' ? quantizationName(fileType) : undefined,
    ...templateFacts(first.values),
    projector: projector?.name,
    projectorBytes: projector?.sizeBytes,
  };
}

interface Projector {
  /** Relative to the directory of the model. */
  readonly name: string;
  readonly sizeBytes: number;
}

const positive = (count: number | undefined): number | undefined => (count === 0 ? undefined : count);

function feedForwardLength(header: HeaderValues): number | undefined {
  const used = header.count('expert_used_count') ?? 0;
  const dense = header.largest('feed_forward_length');
  const experts = used * (header.count('expert_feed_forward_length') ?? dense ?? 0);
  return used > 0 ? experts + (header.count('expert_shared_feed_forward_length') ?? 0) : dense;
}

/** A model may have several templates; the others have a name after a dot. https://github.com/ollama/ollama decides about tools in the same way. */
function templateFacts(values: GgufHeader['values']): Pick<GgufContents, 'chatTemplate' | 'tools' | 'thinking'> {
  const templates = [...values].flatMap(([key, value]) =>
    key.startsWith('tokenizer.chat_template') && typeof value === 'string' ? [value] : [],
  );
  return {
    chatTemplate: templates.length > 0,
    tools: templates.some((template) => /\btools\b|tool_call/.test(template)),
    thinking: templates.some((template) => template.includes('<think>') || template.includes('reasoning_content')),
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

/** The names of quantizations by their number in GGUF files (`general.file_type`; `llama_ftype` of llama.cpp). Pure. */

const NAMES: Readonly<Record<number, string>> = {
  0: 'F32',
  1: 'F16',
  2: 'Q4_0',
  3: 'Q4_1',
  7: 'Q8_0',
  8: 'Q5_0',
  9: 'Q5_1',
  10: 'Q2_K',
  11: 'Q3_K_S',
  12: 'Q3_K_M',
  13: 'Q3_K_L',
  14: 'Q4_K_S',
  15: 'Q4_K_M',
  16: 'Q5_K_S',
  17: 'Q5_K_M',
  18: 'Q6_K',
  19: 'IQ2_XXS',
  20: 'IQ2_XS',
  21: 'Q2_K_S',
  22: 'IQ3_XS',
  23: 'IQ3_XXS',
  24: 'IQ1_S',
  25: 'IQ4_NL',
  26: 'IQ3_S',
  27: 'IQ3_M',
  28: 'IQ2_S',
  29: 'IQ2_M',
  30: 'IQ4_XS',
  31: 'IQ1_M',
  32: 'BF16',
  36: 'TQ1_0',
  37: 'TQ2_0',
  38: 'MXFP4_MOE',
  39: 'NVFP4',
};

/** Undefined for a number that is not known here. */
function quantizationName(fileType: number): string | undefined {
  return NAMES[fileType];
}
