/** Properties of a GGUF model, from its header and the names of files beside it. Pure. */
import { z } from 'zod';
import type { ModelContents, ModelFacts } from '../../provider.ts';
import { ggufStem, shardNames } from '../../../schema/slot/model-providers.ts';
import { headerValues, layerMemory, type HeaderValues } from './layer-memory.ts';
import type { BlockBytes, GgufHeader, TensorTotals } from './parse-gguf-header.ts';

const Count = z.number().optional();
const Flag = z.boolean().optional();
const KeysAndValues = z.object({ keys: z.number(), values: z.number() });
const Contents = z.object({
  architecture: z.string().optional(),
  /** `<arch>.pooling_type`: 0 none, 1 mean, 2 cls, 3 last, 4 rank. */
  poolingType: Count,
  hasClassifier: Flag,
  trainedContext: Count,
  blockCount: Count,
  embeddingLength: Count,
  /** `<arch>.embedding_length_out`: vector length, if it differs. */
  embeddingLengthOut: Count,
  /** The largest of all layers, or the sum of the experts of one token. */
  feedForwardLength: Count,
  headCount: Count,
  headCountKv: Count,
  /** `<arch>.attention.key_length` and `value_length`. Default: embedding length divided by heads. */
  keyLength: Count,
  valueLength: Count,
  /** Costs per token and per sequence. Absent where only the counts above are known. */
  layers: z
    .object({ whole: KeysAndValues, window: KeysAndValues.extend({ tokens: z.number() }).optional(), stateBytes: z.number() })
    .optional(),
  expertCount: Count,
  expertUsedCount: Count,
  expertBytes: Count,
  /** By names of tensors in a layer, for each layer. */
  blocks: z.record(z.string(), z.array(z.number().nonnegative()).readonly()).optional(),
  vocabularySize: Count,
  /** Layers that predict further tokens. */
  predictingLayers: Count,
  /** The file has changes to another model. */
  isAdapter: Flag,
  /** Tensors that stay in host memory. */
  inputBytes: Count,
  hasOutput: Flag,
  parameters: Count,
  quantization: z.string().optional(),
  chatTemplate: Flag,
  tools: Flag,
  thinking: Flag,
  projector: z.string().optional(),
  projectorBytes: Count,
  /** The projector takes images, and recordings. Absent where only its name is known. */
  sees: Flag,
  hears: Flag,
});
export type GgufContents = Readonly<z.output<typeof Contents>>;
/** Absent: unknown. */
export type GgufModel = Pick<ModelFacts, 'id' | 'hostPath' | 'sizeBytes'> &
  GgufContents & {
    /** What the server loads beside it: draft model and adapters. */
    readonly companions?: readonly GgufModel[];
  };

export function ggufModel({ id, hostPath, sizeBytes, provider, contents, companions }: ModelFacts): GgufModel {
  const known = provider === 'gguf' ? parseContents(contents) : undefined;
  return { ...known, id, hostPath, sizeBytes, ...(companions === undefined ? {} : { companions: companions.map(ggufModel) }) };
}

export const parseContents = (contents: ModelContents | undefined): GgufContents | undefined =>
  Contents.safeParse(withoutOddValues(contents)).data;

function withoutOddValues(contents: ModelContents | undefined): ModelContents {
  const isOdd = (key: string, value: unknown): boolean => {
    if (key === 'projector') return typeof value !== 'string' || value.startsWith('/') || value.split('/').includes('..');
    return typeof value === 'number' && (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER) || (key === 'headCount' && value === 0));
  };
  return Object.fromEntries(Object.entries(contents ?? {}).filter(([key, value]) => !isOdd(key, value)));
}

/** Quantisations by `general.file_type` (`llama_ftype` of llama.cpp). */
const QUANTIZATIONS: ReadonlyMap<number, string> = new Map(
  [
    '0 F32, 1 F16, 2 Q4_0, 3 Q4_1, 7 Q8_0, 8 Q5_0, 9 Q5_1, 10 Q2_K, 11 Q3_K_S',
    '12 Q3_K_M, 13 Q3_K_L, 14 Q4_K_S, 15 Q4_K_M, 16 Q5_K_S, 17 Q5_K_M, 18 Q6_K, 19 IQ2_XXS, 20 IQ2_XS',
    '21 Q2_K_S, 22 IQ3_XS, 23 IQ3_XXS, 24 IQ1_S, 25 IQ4_NL, 26 IQ3_S, 27 IQ3_M, 28 IQ2_S, 29 IQ2_M',
    '30 IQ4_XS, 31 IQ1_M, 32 BF16, 36 TQ1_0, 37 TQ2_0, 38 MXFP4_MOE, 39 NVFP4',
  ]
    .flatMap((row) => row.split(', '))
    .map((entry) => entry.split(' '))
    .map(([type, name = '']) => [Number(type), name] as const),
);

const PROJECTOR = 'clip';

export const isProjector = (header: GgufHeader): boolean => header.values.get('general.architecture') === PROJECTOR;

export function ggufContents(
  headers: readonly GgufHeader[],
  projector?: { readonly name: string; readonly sizeBytes: number; readonly values: GgufHeader['values'] },
): GgufContents {
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
    blocks: joinBlocks(headers),
    vocabularySize: first.vocabularySize ?? header.count('vocab_size'),
    predictingLayers: header.count('nextn_predict_layers') ?? 0,
    isAdapter: first.values.get('general.type') === 'adapter',
    inputBytes: sum((tensors) => tensors.inputBytes),
    hasOutput: headers.some(({ tensors }) => tensors.hasOutput),
    parameters: sum((tensors) => tensors.parameters),
    quantization: typeof fileType === 'number' ? QUANTIZATIONS.get(fileType) : undefined,
    ...templateFacts(first.values),
    projector: projector?.name,
    projectorBytes: projector?.sizeBytes,
    ...(projector === undefined ? {} : mediaOf(projector.values)),
  };
}

/** Projectors from before recordings say nothing about them. */
function mediaOf(values: GgufHeader['values']): Pick<GgufContents, 'sees' | 'hears'> {
  return { sees: values.get('clip.has_vision_encoder') !== false, hears: values.get('clip.has_audio_encoder') === true };
}

/** A layer may be in several shards. */
function joinBlocks(headers: readonly GgufHeader[]): BlockBytes {
  const names = new Set(headers.flatMap(({ blocks }) => Object.keys(blocks)));
  const bytesOf = (name: string): readonly number[] => {
    const parts = headers.flatMap(({ blocks }) => (blocks[name] === undefined ? [] : [blocks[name]]));
    const length = Math.max(...parts.map((part) => part.length));
    return Array.from({ length }, (_, layer) => parts.reduce((sum, part) => sum + (part[layer] ?? 0), 0));
  };
  return Object.fromEntries([...names].map((name) => [name, bytesOf(name)]));
}

const positive = (count: number | undefined): number | undefined => (count === 0 ? undefined : count);

function feedForwardLength(header: HeaderValues): number | undefined {
  const used = header.count('expert_used_count') ?? 0;
  const dense = header.largest('feed_forward_length');
  const experts = used * (header.count('expert_feed_forward_length') ?? dense ?? 0);
  return used > 0 ? experts + (header.count('expert_shared_feed_forward_length') ?? 0) : dense;
}

/** Further templates have a name after a dot. https://github.com/ollama/ollama decides about tools in the same way. */
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

/** Adds the listed projector of a catalogue entry, whose first file is the model. */
export function withListedProjector(
  stated: ModelContents | undefined,
  [first = '', ...more]: readonly string[],
): ModelContents | undefined {
  const directory = first.slice(0, first.lastIndexOf('/') + 1);
  const listed = more.find((file) => IS_PROJECTOR.test(file) && file.startsWith(directory));
  return listed === undefined ? stated : { ...stated, projector: listed.slice(directory.length) };
}

const IS_PROJECTOR = /mmproj[^/]*\.gguf$/i;

export const isProjectorName = (name: string): boolean => /mmproj/i.test(name);

/** Vision projector in the directory of a model, or, beside other models, the one with its name. */
export function projectorFor(name: string, siblings: readonly string[]): string | undefined {
  const projectors = siblings.filter((sibling) => IS_PROJECTOR.test(sibling) && sibling !== name).toSorted();
  const stem = ggufStem(name);
  const own = projectors.find((projector) => projector.startsWith(`mmproj-${stem}`) || projector.startsWith(`${stem}.mmproj`));
  if (own !== undefined) return own;
  const shards = new Set(shardNames(name));
  const others = siblings.filter((sibling) => /\.gguf$/i.test(sibling) && !shards.has(sibling) && !projectors.includes(sibling));
  return others.length === 0 ? projectors.find((projector) => projector.startsWith('mmproj')) : undefined;
}
