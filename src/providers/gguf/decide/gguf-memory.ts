/**
 * Memory demand of llama-server before its start, in the parts of llama.cpp. Cache sizes are exact; compute buffers are
 * upper bounds of what llama-server 0.7.0 logs for generated models of each kind (docs/models.md). Pure.
 */
import type { MemoryDemand, Sized } from '../../provider.ts';
import { numberBytes } from './byte-cursor.ts';
import type { GgufModel } from './gguf-model.ts';
import { MAX_LAYERS, type LayerMemory } from './layer-memory.ts';
import type { ServerOptions } from './model-role.ts';

export const MIB = 2 ** 20;

export interface ServerLayout extends Pick<ServerOptions, 'keyType' | 'valueType' | 'fullWindows' | 'cacheOnHost'> {
  readonly host: HostWeights;
  readonly context: number;
  readonly parallel: number;
  /** All sequences share the context; otherwise each has an equal part. */
  readonly unified: boolean;
  readonly physicalBatch: number;
  readonly cacheRamMiB: number;
  readonly checkpoints: number;
  /** Minimum tokens between checkpoints of earlier requests; 0: none. */
  readonly checkpointSpacing: number;
  readonly flashAttention: boolean;
  readonly encoder: boolean;
  readonly gpu: boolean;
  /** What the driver takes of a device for the process. */
  readonly driverBytes: number;
}

/** Process and libraries. Measured: 23 MiB, and about 8 MiB more after requests. */
const BASE_BYTES = 32 * MIB;
/**
 * Code and work space of CUDA. Measured with llama-server 0.7.0 on an H100 and an H200 with driver 580: 550 to 565 MiB
 * after the start, and up to 725 MiB once matrices of 16 or 32 bits were multiplied.
 */
export const CUDA_BYTES = 576 * MIB;
/** The first one, and per request: before the last message, at the prompt's end, and a batch before it. */
const NEAR_CHECKPOINTS = 4;
/** Strings and tables per token of the vocabulary. Measured: 150 bytes without merges. */
export const VOCABULARY_BYTES = 320;
/** llama.cpp rounds the cells of a cache up to a multiple. */
const CELLS = 256;
export const FLOAT_BYTES = 4;
/** Mask of a batch: 16-bit numbers with flash attention, otherwise also 32-bit ones. */
const MASK_BYTES = 2;
const WIDE_MASK_BYTES = 4;
/** 32-bit rows per token: multiples of the inner length of a feed-forward layer, and of the embedding length. */
const INNER_ROWS = 3;
const OUTER_ROWS = 5;
/** Additional rows of the embedding length in a layer with a state. */
const STATE_ROWS = 11;
const UNKNOWN_WIDTH = 4096;
const UNKNOWN_INNER = 4;
/** Buffers for one image beside the projector's weights; not measured with real ones. */
const PROJECTOR_BUFFER_BYTES = 128 * MIB;

export type ServerParts = Readonly<ReturnType<typeof serverParts>>;

export function serverParts(model: Sized<GgufModel>, layout: ServerLayout) {
  const layers = layersOf(model);
  const { cells, windowCells } = cellsOf(layers, layout);
  const inputs = inputBytes(model, layout, cells + windowCells);
  return {
    weights: model.sizeBytes,
    cache: cacheBytes(model, layout),
    compute: inputs + batchBytes(model, layout) + scoreBytes(model, layout, cells) + outputBytes(model, layout),
    /** Part of `compute` that the host prepares. */
    inputs,
    projector: model.projector === undefined ? 0 : (model.projectorBytes ?? 0) + PROJECTOR_BUFFER_BYTES,
    checkpoints: keptCheckpoints(layers.window?.tokens ?? 0, layout) * checkpointBytes(model, layout),
    promptCache: layout.cacheRamMiB * MIB,
    base: BASE_BYTES + (model.vocabularySize ?? 0) * VOCABULARY_BYTES,
  };
}

export function splitMemory(parts: ServerParts, model: GgufModel, layout: ServerLayout): MemoryDemand {
  const { weights, cache, compute, inputs, projector, checkpoints, promptCache, base } = parts;
  const ofProcess = base + promptCache + checkpoints;
  if (!layout.gpu) return { hostBytes: Math.ceil(ofProcess + weights + cache + compute + projector), deviceBytes: 0 };
  const input = Math.min(model.inputBytes ?? 0, weights);
  const { bytes, largestBytes, layerShare, output } = layout.host;
  const left = output ? weights - input : Math.min(bytes, weights - input);
  // Without an output matrix, the device gets a copy of the embedding table.
  const copied = model.hasOutput === false && !output ? input : 0;
  const onDevice = layout.cacheOnHost ? 0 : cache * (1 - layerShare);
  // Both compute, and a device computes long prompts with copies of what the host has.
  const onBoth = left === 0 ? 0 : compute - inputs;
  return {
    hostBytes: Math.ceil(ofProcess + input + left + inputs + onBoth + cache - onDevice),
    deviceBytes: Math.ceil(
      layout.driverBytes + weights - input - left + copied + onDevice + compute + (left === 0 ? 0 : largestBytes) + projector,
    ),
  };
}

/** Keys, values and states of all sequences. */
export function cacheBytes(model: GgufModel, layout: ServerLayout): number {
  const layers = layersOf(model);
  if (layout.encoder) return 0;
  const { cells, windowCells, streams } = cellsOf(layers, layout);
  const ofCells = cells * cachedBytes(layers.whole, layout) + windowCells * windowNumberBytes(layers, layout);
  return streams * ofCells + layers.stateBytes * layout.parallel;
}
/** Possible checkpoints of one sequence. Close ones of earlier requests are replaced. */
export const mostCheckpoints = ({ context, parallel, unified, checkpointSpacing }: ServerLayout): number =>
  NEAR_CHECKPOINTS + spacedCheckpoints(unified ? context : context / parallel, checkpointSpacing);

/** Not all sequences can be as long as a shared context. */
function keptCheckpoints(windowTokens: number, layout: ServerLayout): number {
  const { context, parallel, checkpoints, checkpointSpacing } = layout;
  const each = parallel * Math.min(checkpoints, mostCheckpoints(layout));
  return Math.min(each, parallel * nearCheckpoints(windowTokens, layout) + spacedCheckpoints(context, checkpointSpacing));
}

/** Sequences little longer than the window have smaller checkpoints before the last batch. */
function nearCheckpoints(windowTokens: number, { context, parallel, physicalBatch }: ServerLayout): number {
  const tokens = context / parallel;
  const beforeBatch = Math.max(0, tokens - physicalBatch) / Math.max(1, Math.min(windowTokens, tokens));
  const early = NEAR_CHECKPOINTS - 1;
  return Math.max(early, 1 + early * Math.min(1, beforeBatch));
}

const spacedCheckpoints = (tokens: number, spacing: number): number => (spacing === 0 ? Infinity : Math.floor(tokens / spacing));

/** Averaged over all sequences. */
export function checkpointBytes(model: GgufModel, layout: ServerLayout): number {
  const layers = layersOf(model);
  if (layout.encoder) return 0;
  return windowNumberBytes(layers, layout) * windowTokens(layers, layout) + layers.stateBytes;
}

/** llama-server caches numbers of 16 bits by default. */
const cachedBytes = ({ keys, values }: LayerMemory['whole'], { keyType = 'f16', valueType = 'f16' }: ServerLayout): number =>
  keys * numberBytes(keyType) + values * numberBytes(valueType);
const windowNumberBytes = ({ window }: LayerMemory, layout: ServerLayout): number =>
  window === undefined ? 0 : cachedBytes(window, layout);

function layersOf(model: GgufModel): LayerMemory {
  if (model.layers !== undefined) return { ...model.layers, window: model.layers.window };
  const { blockCount, embeddingLength, headCount: heads = 1 } = model;
  if (blockCount === undefined || embeddingLength === undefined) return { whole: { keys: 0, values: 0 }, window: undefined, stateBytes: 0 };
  const headLength = embeddingLength / Math.max(1, heads);
  const perLayer = blockCount * (model.headCountKv ?? heads);
  const whole = { keys: perLayer * (model.keyLength ?? headLength), values: perLayer * (model.valueLength ?? headLength) };
  return { whole, window: undefined, stateBytes: 0 };
}

function cellsOf(
  layers: LayerMemory,
  layout: ServerLayout,
): { readonly cells: number; readonly windowCells: number; readonly streams: number } {
  const { context, parallel, unified, physicalBatch, fullWindows } = layout;
  const streams = unified ? 1 : parallel;
  // Layers with only a state need neither cells nor a mask.
  const cells = layers.whole.keys === 0 && layers.window === undefined ? 0 : padded(context / streams);
  if (layers.window === undefined) return { cells, windowCells: 0, streams };
  const seen = layers.window.tokens * (unified ? parallel : 1) + physicalBatch;
  return { cells, windowCells: fullWindows ? cells : padded(Math.min(cells, seen)), streams };
}

const padded = (tokens: number): number => Math.ceil(tokens / CELLS) * CELLS;

function inputBytes(model: GgufModel, { physicalBatch, flashAttention }: ServerLayout, cells: number): number {
  const perCell = flashAttention ? MASK_BYTES : WIDE_MASK_BYTES;
  return physicalBatch * (cells * perCell + (model.embeddingLength ?? UNKNOWN_WIDTH) * FLOAT_BYTES);
}

function batchBytes(model: GgufModel, { physicalBatch }: ServerLayout): number {
  const width = model.embeddingLength ?? UNKNOWN_WIDTH;
  const heads = model.headCount ?? 1;
  const headLength = width / Math.max(1, heads);
  const inner = model.feedForwardLength ?? width * UNKNOWN_INNER;
  const experts = width * (model.expertUsedCount ?? 0);
  const state = (model.layers?.stateBytes ?? 0) > 0 ? width * STATE_ROWS : 0;
  // The input of the batch is counted with the other inputs.
  const feedForward = INNER_ROWS * inner + (OUTER_ROWS - 1) * width + experts + state;
  const attention = heads * (2 * (model.keyLength ?? headLength) + (model.valueLength ?? headLength)) + 2 * width;
  return physicalBatch * FLOAT_BYTES * Math.max(feedForward, attention);
}

/** Without flash attention, the scores of a whole batch are in memory at once. */
const scoreBytes = (model: GgufModel, { physicalBatch, flashAttention }: ServerLayout, cells: number): number =>
  flashAttention ? 0 : physicalBatch * cells * (model.headCount ?? 1) * FLOAT_BYTES;
const outputBytes = (model: GgufModel, { parallel }: ServerLayout): number =>
  parallel * ((model.vocabularySize ?? 0) + (model.embeddingLength ?? UNKNOWN_WIDTH)) * FLOAT_BYTES;
const windowTokens = (layers: LayerMemory, { context, parallel, fullWindows }: ServerLayout): number =>
  fullWindows ? 0 : Math.min(context / parallel, layers.window?.tokens ?? 0);

export interface Offload {
  /** Layers on devices, with the output matrix; undefined: all. */
  readonly gpuLayers: number | undefined;
  /** The experts of that many layers are on the host. */
  readonly expertLayersOnHost: number;
  /** Each `<pattern>=<buffer type>`. */
  readonly overrides: readonly string[];
}

export interface HostWeights {
  readonly bytes: number;
  /** The largest part of one layer: for long prompts, a device gets a copy. */
  readonly largestBytes: number;
  /** Share of the layers that the host computes, with their caches. */
  readonly layerShare: number;
  readonly output: boolean;
}

interface Override {
  readonly pattern: RegExp;
  readonly onHost: boolean;
}

/** Models whose header was not read yet are taken to have as many layers as one of 8 billion weights. */
const UNKNOWN_LAYERS = 32;
const EXPERTS = /_exps\./;
/** More of them could take seconds to match with all tensors. */
const MOST_OVERRIDES = 16;
const MOST_PATTERN_LETTERS = 200;
const MOST_REPETITIONS = 2;

/** A header may claim any number. */
export const layersIn = ({ blockCount = UNKNOWN_LAYERS }: GgufModel): number => Math.max(1, Math.min(Math.floor(blockCount), MAX_LAYERS));

/**
 * Weights that llama.cpp keeps in the memory of the host beside a GPU: the layers that `-ngl` leaves there, experts of
 * `-cmoe` and `-ncmoe`, and tensors of `-ot`. Rules of llama.cpp, `llama_model::load_tensors` and `common/arg.cpp` as
 * of November 2026: `-ngl` counts from the end and takes the output matrix for the last layer; `-ncmoe` counts from
 * the beginning; the first override that matches decides.
 */
export function hostWeights(model: GgufModel, { gpuLayers, expertLayersOnHost, overrides }: Offload): HostWeights {
  const layers = layersIn(model);
  const first = gpuLayers === undefined ? 0 : Math.max(0, layers + 1 - gpuLayers);
  const rules = overrides.slice(0, MOST_OVERRIDES).flatMap((text) => parseOverride(text) ?? []);
  const tensors = tensorsOf(model, layers).map(([name, bytes]) => ({ name, bytes, isExpert: EXPERTS.test(name) }));
  const moved = Array.from({ length: layers }, (_, layer) =>
    tensors.reduce((sum, { name, bytes, isExpert }) => {
      const rule = rules.find(({ pattern }) => pattern.test(`blk.${layer}.${name}`));
      const isOnHost = layer < first || (rule?.onHost ?? (isExpert && layer < expertLayersOnHost));
      return sum + (isOnHost ? (bytes[layer] ?? 0) : 0);
    }, 0),
  );
  return {
    bytes: moved.reduce((sum, bytes) => sum + bytes, 0),
    largestBytes: Math.max(...moved),
    layerShare: Math.min(layers, first) / layers,
    output: first > layers,
  };
}

/** Where only sums are known, all layers are taken to be of the same size. */
function tensorsOf(
  { blocks, expertBytes = 0, sizeBytes = 0, inputBytes = 0 }: GgufModel,
  layers: number,
): readonly (readonly [string, readonly number[]])[] {
  if (blocks !== undefined && Object.keys(blocks).length > 0) return Object.entries(blocks);
  const bytesInLayers = Math.max(0, sizeBytes - inputBytes);
  const experts = Math.min(expertBytes, bytesInLayers);
  const even = (bytes: number): readonly number[] => Array.from({ length: layers }, () => bytes / layers);
  return [
    ['ffn_exps.weight', even(experts)],
    ['weight', even(bytesInLayers - experts)],
  ];
}

/** Undefined for a pattern that this service does not evaluate: its tensors then count as those of a device. */
function parseOverride(text: string): Override | undefined {
  const at = text.lastIndexOf('=');
  const pattern = text.slice(0, at);
  const repetitions = pattern.match(/(?<!\\)[*+{]/g)?.length ?? 0;
  if (at < 1 || pattern.length > MOST_PATTERN_LETTERS || repetitions > MOST_REPETITIONS || /\)[*+{]|\\[1-9]/.test(pattern))
    return undefined;
  try {
    return { pattern: new RegExp(pattern), onHost: text.slice(at + 1).startsWith('CPU') };
  } catch {
    return undefined;
  }
}
