/**
 * Computes the memory that llama-server needs before it is started. The parts are those of llama.cpp: the weights as stored in the file; the cache of keys and values
 * (`llama_kv_cache`), with a second one for layers with a window, and the state of layers without attention; the compute buffer of one batch; and what llama-server keeps of
 * earlier prompts. The sizes of caches are exact, and those of compute buffers at most what llama-server 0.7.0 logs for generated models of each kind; docs/models.md has
 * the comparison with what the process takes. Pure.
 */
import type { MemoryDemand } from '../../provider.ts';
import type { GgufModel } from './gguf-model.ts';
import type { LayerMemory } from './layer-memory.ts';

export const MIB = 2 ** 20;

/** How the server divides its memory. */
export interface ServerLayout {
  /** Tokens of all sequences together. */
  readonly context: number;
  /** Sequences at the same time. */
  readonly parallel: number;
  /** Whether all sequences share the context; otherwise each has an equal part to itself. */
  readonly unified: boolean;
  /** Tokens that are computed at once. */
  readonly physicalBatch: number;
  readonly cacheRamMiB: number;
  /** The most copies that one sequence keeps. */
  readonly checkpoints: number;
  /** Tokens between copies that earlier requests of a sequence have left; 0: no least distance. */
  readonly checkpointSpacing: number;
  readonly keyType: string | undefined;
  readonly valueType: string | undefined;
  readonly flashAttention: boolean;
  readonly fullWindows: boolean;
  /** An encoder has no cache of keys and values. */
  readonly encoder: boolean;
  readonly gpu: boolean;
  readonly cacheOnHost: boolean;
  readonly expertsOnHost: boolean;
}

/** Of the process with its libraries. Measured: 23 MiB, and about 8 MiB more after requests. */
const BASE_BYTES = 32 * MIB;
/**
 * Each sequence keeps its first copy, and a request makes up to three: before the last message of the user, at the end of the prompt, and a batch before its end if that message is longer
 * than a batch.
 */
const NEAR_CHECKPOINTS = 4;
/** Texts and tables of one token of the vocabulary. Measured: 150 bytes without merges. */
const VOCABULARY_BYTES = 320;
/** llama.cpp rounds the number of cells of a cache up to a multiple of this. */
const CELLS = 256;
const FLOAT_BYTES = 4;
/** With flash attention, the mask of a batch has 16-bit numbers, otherwise also 32-bit ones. */
const MASK_BYTES = 2;
const WIDE_MASK_BYTES = 4;
/** Rows of 32-bit numbers for each token of a batch while a feed-forward layer is computed: so many of its inner length, and so many of the embedding length. */
const INNER_ROWS = 3;
const OUTER_ROWS = 5;
/** More rows of the embedding length in a layer that keeps a state. */
const STATE_ROWS = 11;
/** For files that do not say it. */
const UNKNOWN_WIDTH = 4096;
const UNKNOWN_INNER = 4;
/** What a projector computes an image with, beyond its own weights; not measured with real ones. */
const PROJECTOR_BUFFER_BYTES = 128 * MIB;

export interface ServerParts {
  readonly weights: number;
  /** Keys, values and states of all sequences. */
  readonly cache: number;
  readonly compute: number;
  /** The part of `compute` for the inputs of a batch, which the host prepares. */
  readonly inputs: number;
  readonly projector: number;
  /** Copies of windows and states, from which a sequence can go on. */
  readonly checkpoints: number;
  readonly promptCache: number;
  readonly base: number;
}

export function serverParts(model: GgufModel, layout: ServerLayout): ServerParts {
  const layers = layersOf(model);
  const { cells, windowCells, streams } = cellsOf(layers, layout);
  const keptCells = layout.encoder ? 0 : cells * streams;
  const keptWindow = layout.encoder ? 0 : windowCells * streams;
  const windowBytes = layers.window === undefined ? 0 : numberBytes(layers.window, layout);
  const states = layout.encoder ? 0 : layers.stateBytes * layout.parallel;
  const inputs = inputBytes(model, layout, cells + windowCells);
  return {
    weights: model.sizeBytes,
    cache: keptCells * numberBytes(layers.whole, layout) + keptWindow * windowBytes + states,
    compute: inputs + batchBytes(model, layout) + scoreBytes(model, layout, cells) + outputBytes(model, layout),
    inputs,
    projector: model.projector === undefined ? 0 : (model.projectorBytes ?? 0) + PROJECTOR_BUFFER_BYTES,
    checkpoints: keptCheckpoints(layers.window?.tokens ?? 0, layout) * checkpointBytes(model, layout),
    promptCache: layout.cacheRamMiB * MIB,
    base: BASE_BYTES + (model.vocabularySize ?? 0) * VOCABULARY_BYTES,
  };
}

/** On a GPU, all layers, their cache and the buffers of a batch are in its memory. The process, what it keeps of prompts, and the table that embeds tokens stay on the host. */
export function splitMemory(parts: ServerParts, model: GgufModel, layout: ServerLayout): MemoryDemand {
  const { weights, cache, compute, inputs, projector, checkpoints, promptCache, base } = parts;
  const ofProcess = base + promptCache + checkpoints;
  if (!layout.gpu) return { hostBytes: Math.ceil(ofProcess + weights + cache + compute + projector), deviceBytes: 0 };
  const input = Math.min(model.inputBytes ?? 0, weights);
  const experts = layout.expertsOnHost ? Math.min(model.expertBytes ?? 0, weights - input) : 0;
  // A model without an output matrix uses the table that embeds tokens, of which the device gets a copy.
  const copied = model.hasOutput === false ? input : 0;
  const onDevice = layout.cacheOnHost ? 0 : cache;
  return {
    hostBytes: Math.ceil(ofProcess + input + experts + inputs + cache - onDevice),
    deviceBytes: Math.ceil(weights - input - experts + copied + onDevice + compute + projector),
  };
}

/** Returns the bytes of keys, values and states: what a saved conversation of the whole context takes. */
export function cacheBytes(model: GgufModel, layout: ServerLayout): number {
  return serverParts(model, layout).cache;
}

/** Returns how many copies one sequence can have, whatever it may keep. Copies of earlier requests that are too close to each other are removed when a new one is made. */
export function mostCheckpoints({ context, parallel, unified, checkpointSpacing }: ServerLayout): number {
  return NEAR_CHECKPOINTS + spacedCheckpoints(unified ? context : context / parallel, checkpointSpacing);
}

/** Of all sequences. Sequences that share a context cannot all be as long as it. */
function keptCheckpoints(windowTokens: number, layout: ServerLayout): number {
  const { context, parallel, checkpoints, checkpointSpacing } = layout;
  const each = parallel * Math.min(checkpoints, mostCheckpoints(layout));
  return Math.min(each, parallel * nearCheckpoints(windowTokens, layout) + spacedCheckpoints(context, checkpointSpacing));
}

/** In sequences that are little longer than the window, one that is a batch before the end has less than a window, and so have the earlier ones. */
function nearCheckpoints(windowTokens: number, { context, parallel, physicalBatch }: ServerLayout): number {
  const tokens = context / parallel;
  const beforeBatch = Math.max(0, tokens - physicalBatch) / Math.max(1, Math.min(windowTokens, tokens));
  const early = NEAR_CHECKPOINTS - 1;
  return Math.max(early, 1 + early * Math.min(1, beforeBatch));
}

const spacedCheckpoints = (tokens: number, spacing: number): number => (spacing === 0 ? Infinity : Math.floor(tokens / spacing));

/** Returns the bytes of one copy of what cannot be computed back: the windows and states of a sequence, on average over all sequences. */
export function checkpointBytes(model: GgufModel, layout: ServerLayout): number {
  const layers = layersOf(model);
  if (layout.encoder) return 0;
  const windowBytes = layers.window === undefined ? 0 : numberBytes(layers.window, layout) * windowTokens(layers, layout);
  return windowBytes + layers.stateBytes;
}

/** Returns the bytes that each token takes. */
function numberBytes({ keys, values }: LayerMemory['whole'], { keyType, valueType }: ServerLayout): number {
  return keys * cacheNumberBytes(keyType) + values * cacheNumberBytes(valueType);
}

function layersOf(model: GgufModel): LayerMemory {
  if (model.layers !== undefined) return { ...model.layers, window: model.layers.window };
  const { blockCount, embeddingLength, headCount: heads = 1 } = model;
  if (blockCount === undefined || embeddingLength === undefined) return { whole: { keys: 0, values: 0 }, window: undefined, stateBytes: 0 };
  const headLength = embeddingLength / Math.max(1, heads);
  const perLayer = blockCount * (model.headCountKv ?? heads);
  const whole = { keys: perLayer * (model.keyLength ?? headLength), values: perLayer * (model.valueLength ?? headLength) };
  return { whole, window: undefined, stateBytes: 0 };
}

/** Cells of each stream. A stream is a cache that one sequence has to itself, or all of them share. */
function cellsOf(
  layers: LayerMemory,
  layout: ServerLayout,
): { readonly cells: number; readonly windowCells: number; readonly streams: number } {
  const { context, parallel, unified, physicalBatch, fullWindows } = layout;
  const streams = unified ? 1 : parallel;
  // Layers that keep only a state need no cells, and no mask of them.
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
function scoreBytes(model: GgufModel, { physicalBatch, flashAttention }: ServerLayout, cells: number): number {
  return flashAttention ? 0 : physicalBatch * cells * (model.headCount ?? 1) * FLOAT_BYTES;
}

function outputBytes(model: GgufModel, { parallel }: ServerLayout): number {
  return parallel * ((model.vocabularySize ?? 0) + (model.embeddingLength ?? UNKNOWN_WIDTH)) * FLOAT_BYTES;
}

function windowTokens(layers: LayerMemory, { context, parallel, fullWindows }: ServerLayout): number {
  return fullWindows ? 0 : Math.min(context / parallel, layers.window?.tokens ?? 0);
}

/** The types that llama-server offers for its cache of keys and values, with their size. Pure. */

/** Bytes of a block of 32 numbers. */
const BLOCK_BYTES: Readonly<Record<string, number>> = {
  f32: 128,
  f16: 64,
  bf16: 64,
  q8_0: 34,
  q5_1: 24,
  q5_0: 22,
  q4_1: 20,
  q4_0: 18,
  iq4_nl: 18,
};
const BLOCK_NUMBERS = 32;
const DEFAULT_TYPE = 'f16';

/** Returns the bytes of one number. A type that is not known counts as the default. */
function cacheNumberBytes(type: string = DEFAULT_TYPE): number {
  return (BLOCK_BYTES[type] ?? 2 * BLOCK_NUMBERS) / BLOCK_NUMBERS;
}
