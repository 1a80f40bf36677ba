/** Divides the memory of llama-server by arguments of the slot, its model and `resources.memory`. Pure. */
import type { MemoryDemand, MemorySplit, Sized } from '../../provider.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { GgufModel } from './gguf-model.ts';
import { isEncoder, roleOf, serverOptions } from './model-role.ts';
import {
  hostWeights,
  layersIn,
  type HostWeights,
  cacheBytes,
  checkpointBytes,
  CUDA_BYTES,
  FLOAT_BYTES,
  MIB,
  mostCheckpoints,
  serverParts,
  splitMemory,
  type ServerLayout,
  VOCABULARY_BYTES,
} from './gguf-memory.ts';

interface ChosenLayout {
  readonly layout: ServerLayout;
  /** Undefined: the trained context. */
  readonly context: number | undefined;
  /** Undefined: four sequences that share the context. */
  readonly parallel: number | undefined;
}

const UNKNOWN_CONTEXT = 4096;
/** Longest input of OpenAI's embeddings. The memory of an embedding batch grows with the square of the context. */
const MAX_DEFAULT_EMBEDDING_CONTEXT = 8192;
const MIN_DEFAULT_CONTEXT = 4096;
const CONTEXT_STEP = 256;
/** Default of llama-server 0.7.0 for `--parallel`. */
const AUTOMATIC_PARALLEL = 4;
/** More sequences slow each other down. */
const MAX_PARALLEL = 8;
const TEXT_BATCH = 512;
/** Default of llama-server; for large windows it would take tens of GiB. */
const MAX_CHECKPOINTS = 32;
/** Default of llama-server 0.7.0, in tokens; earlier versions have others. */
const CHECKPOINT_SPACING = 8192;
/** Limit over all sequences, as long as each has one. */
const MAX_CHECKPOINT_BYTES = 512 * MIB;
const MIN_CACHE_RAM_MIB = 64;
const MAX_CACHE_RAM_MIB = 2048;

export function chooseLayout(slot: string, spec: SlotSpec, model: GgufModel): ChosenLayout {
  const options = serverOptions(spec);
  const { start } = roleOf(slot, spec, model);
  const host = hostWeights(model, options);
  const layoutOf = (context: number, parallel: number | undefined): ServerLayout =>
    completeLayout({ slot, spec, model, host }, context, parallel);
  const trained = model.trainedContext ?? UNKNOWN_CONTEXT;
  const set = options.context === 0 ? trained : options.context;
  if (start !== 'generate') {
    const context = embeddingContext(spec, model);
    return { layout: layoutOf(set ?? context, options.parallel), context, parallel: undefined };
  }
  const { memoryBytes } = spec.resources;
  const wanted = set ?? spec.model.context;
  const { sizeBytes } = model;
  const fits = (layout: ServerLayout): boolean =>
    sizeBytes !== undefined && memoryBytes !== undefined && totalBytes(spec, { ...model, sizeBytes }, layout) <= memoryBytes;
  const floor = Math.min(trained, MIN_DEFAULT_CONTEXT);
  const range = { from: floor, to: trained, step: CONTEXT_STEP };
  const { parallel: count } = spec.model;
  if (count !== undefined) {
    const largest = memoryBytes === undefined ? trained : largestFitting(range, (tokens) => fits(layoutOf(count * tokens, count)));
    const context = count * (wanted ?? largest ?? floor);
    return { layout: layoutOf(context, count), context, parallel: count };
  }
  if (memoryBytes === undefined || options.parallel !== undefined || options.context !== undefined)
    return { layout: layoutOf(wanted ?? trained, options.parallel), context: spec.model.context, parallel: undefined };
  const context = wanted ?? largestFitting(range, (tokens) => fits(layoutOf(tokens, undefined))) ?? floor;
  const parallel = largestFitting({ from: 2, to: MAX_PARALLEL, step: 1 }, (count) => fits(layoutOf(count * context, count)));
  if (parallel !== undefined) return { layout: layoutOf(parallel * context, parallel), context: parallel * context, parallel };
  return { layout: layoutOf(context, undefined), context, parallel: undefined };
}

export const serverMemory = (slot: string, spec: SlotSpec, model: Sized<GgufModel>): MemoryDemand =>
  demandOf(spec, model, chooseLayout(slot, spec, model).layout);

/** Experts first: a token needs a few of them, and attention in each layer. */
export function serverSplits(slot: string, spec: SlotSpec, model: Sized<GgufModel>): readonly MemorySplit[] {
  if (spec.model.offload !== 'auto' || !usesGpu(spec) || serverOptions(spec).dividesWeights) return [];
  const { layout } = chooseLayout(slot, spec, model);
  const parts = serverParts(model, layout);
  const layers = layersIn(model);
  const hasExperts = (model.expertBytes ?? 0) > 0;
  const { draft, adapters } = companionMemory(spec, model, layout);
  const splitOf = (expertLayersOnHost: number, gpuLayers: number | undefined, onHost: string): MemorySplit => ({
    demand: sumOf([
      splitMemory(parts, model, { ...layout, host: hostWeights(model, { expertLayersOnHost, gpuLayers, overrides: [] }) }),
      draft,
      adapters,
    ]),
    env: {
      ...(gpuLayers === undefined ? {} : { [GPU_LAYERS]: String(gpuLayers) }),
      ...(expertLayersOnHost === 0 ? {} : { LLAMA_ARG_N_CPU_MOE: String(expertLayersOnHost) }),
    },
    onHost,
  });
  const counts = Array.from({ length: layers }, (_, index) => index + 1);
  const textOf = (count: number): string =>
    model.blockCount === undefined ? `about ${Math.round((100 * count) / layers)} % of the layers` : `${count} of ${layers} layers`;
  const experts = hasExperts ? ', and all experts' : '';
  return [
    ...(hasExperts ? counts.map((count) => splitOf(count, undefined, `the experts of ${textOf(count)}`)) : []),
    ...counts.map((count) => splitOf(hasExperts ? layers : 0, layers + 1 - count, `${textOf(count)}${experts}`)),
  ];
}

/** Layers on devices, of a server that does not fit with all of them. */
export const GPU_LAYERS = 'LLAMA_ARG_N_GPU_LAYERS';

function completeLayout(
  { slot, spec, model, host }: { readonly slot: string; readonly spec: SlotSpec; readonly model: GgufModel; readonly host: HostWeights },
  context: number,
  parallel: number | undefined,
): ServerLayout {
  const options = serverOptions(spec);
  const role = roleOf(slot, spec, model);
  const batch = role.start === 'generate' ? Math.min(TEXT_BATCH, context) : embeddingContext(spec, model);
  const { keyType, valueType, fullWindows, cacheOnHost } = options;
  const chosen = { keyType, valueType, fullWindows, cacheOnHost, host };
  const layout: ServerLayout = {
    ...chosen,
    context,
    parallel: parallel ?? AUTOMATIC_PARALLEL,
    unified: options.unified ?? parallel === undefined,
    physicalBatch: Math.min(options.physicalBatch ?? batch, context),
    cacheRamMiB: 0,
    checkpoints: 0,
    checkpointSpacing: options.checkpointSpacing ?? CHECKPOINT_SPACING,
    // Values of less than 16 bits need flash attention.
    flashAttention: (options.flashAttention ?? true) || /^i?q/.test(options.valueType ?? ''),
    encoder: isEncoder(model),
    gpu: usesGpu(spec),
    driverBytes: spec.backend === 'cuda' ? CUDA_BYTES : 0,
  };
  // Embeddings and ranks make no checkpoints.
  const checkpoints = role.start === 'generate' ? (options.checkpoints ?? checkpointCount(model, layout)) : 0;
  const computed = { ...layout, checkpoints };
  // Servers that only embed or rank keep no prompts.
  if (!role.capabilities.includes('chat')) return computed;
  return { ...computed, cacheRamMiB: options.cacheRamMiB ?? promptCacheMiB(model, computed) };
}

function checkpointCount(model: GgufModel, layout: ServerLayout): number {
  const bytes = checkpointBytes(model, layout) * layout.parallel;
  return bytes === 0 ? 0 : Math.min(MAX_CHECKPOINTS, mostCheckpoints(layout), Math.max(1, Math.floor(MAX_CHECKPOINT_BYTES / bytes)));
}

const promptCacheMiB = (model: GgufModel, layout: ServerLayout): number =>
  Math.min(MAX_CACHE_RAM_MIB, Math.max(MIN_CACHE_RAM_MIB, Math.ceil(cacheBytes(model, layout) / MIB)));

/** Encoders have no positions beyond the trained context. */
function embeddingContext(spec: SlotSpec, model: GgufModel): number {
  const trained = model.trainedContext ?? UNKNOWN_CONTEXT;
  if (isEncoder(model)) return Math.min(spec.model.context ?? MAX_DEFAULT_EMBEDDING_CONTEXT, trained);
  return spec.model.context ?? Math.min(trained, MAX_DEFAULT_EMBEDDING_CONTEXT);
}

function demandOf(spec: SlotSpec, model: Sized<GgufModel>, layout: ServerLayout): MemoryDemand {
  const { draft, adapters } = companionMemory(spec, model, layout);
  return sumOf([splitMemory(serverParts(model, layout), model, layout), draft, adapters]);
}

const NOTHING: MemoryDemand = { hostBytes: 0, deviceBytes: 0 };

const sumOf = (demands: readonly MemoryDemand[]): MemoryDemand =>
  demands.reduce((sum, each) => ({ hostBytes: sum.hostBytes + each.hostBytes, deviceBytes: sum.deviceBytes + each.deviceBytes }), NOTHING);

function totalBytes(spec: SlotSpec, model: Sized<GgufModel>, layout: ServerLayout): number {
  const { hostBytes, deviceBytes } = demandOf(spec, model, layout);
  return hostBytes + deviceBytes;
}

/** Table of earlier text, as logged by b11669. */
const NGRAM_BYTES = 16 * MIB;
/** The server decides where the slot does not: b11669 proposes 3, earlier builds 16, from earlier text up to 64. */
const MOST_PROPOSED = 16;
const MOST_REPEATED = 64;

/** What the keys of a slot add to the memory of its server. Files of unknown size count as nothing. */
export function companionMemory(spec: SlotSpec, model: GgufModel, layout: ServerLayout) {
  const { draft, adapters: named } = spec.model;
  const at = (bytes: number): MemoryDemand =>
    layout.gpu ? { hostBytes: 0, deviceBytes: Math.ceil(bytes) } : { hostBytes: Math.ceil(bytes), deviceBytes: 0 };
  const found = (id: string): number => model.companions?.find((each) => each.id === id)?.sizeBytes ?? 0;
  const adapters = at(named.reduce((sum, { file }) => sum + found(file), 0));
  if (draft === undefined) return { draft: NOTHING, adapters };
  const proposed = draft.max ?? (draft.ngram === true ? MOST_REPEATED : MOST_PROPOSED);
  const checked = { hostBytes: layout.parallel * proposed * (model.vocabularySize ?? 0) * FLOAT_BYTES, deviceBytes: 0 };
  const drafting = draft.ngram === true ? { hostBytes: NGRAM_BYTES, deviceBytes: 0 } : draftMemory(model, draft.model, layout);
  return { draft: sumOf([checked, drafting]), adapters };
}

/** A draft model has a context of the same size, with numbers of 16 bits. A head uses the weights of the model. */
function draftMemory(model: GgufModel, id: string | undefined, layout: ServerLayout): MemoryDemand {
  const own = id === undefined ? withHeadOnly(model) : model.companions?.find((each) => each.id === id);
  if (own?.sizeBytes === undefined) return NOTHING;
  const sized = { ...own, sizeBytes: own.sizeBytes };
  const host = hostWeights(sized, { gpuLayers: undefined, expertLayersOnHost: 0, overrides: [] });
  const alone = { ...layout, host, keyType: undefined, valueType: undefined, cacheRamMiB: 0, checkpoints: 0, driverBytes: 0 };
  return splitMemory({ ...serverParts(sized, alone), projector: 0, base: (own.vocabularySize ?? 0) * VOCABULARY_BYTES }, sized, alone);
}

/** Its layers with their share of the cache. */
function withHeadOnly({ layers, vocabularySize: _own, ...model }: GgufModel): GgufModel {
  const all = layersIn(model);
  const blockCount = Math.max(1, model.predictingLayers ?? 1);
  const share = ({ keys, values }: { readonly keys: number; readonly values: number }) => ({
    keys: (keys * blockCount) / all,
    values: (values * blockCount) / all,
  });
  const cached = layers && { whole: share(layers.whole), window: undefined, stateBytes: 0 };
  return {
    ...model,
    blockCount,
    sizeBytes: 0,
    inputBytes: 0,
    hasOutput: true,
    blocks: {},
    ...(cached === undefined ? {} : { layers: cached }),
  };
}

/** The last value of the range that fits; everything smaller than a fitting value fits. */
function largestFitting(
  { from, to, step }: Readonly<Record<'from' | 'to' | 'step', number>>,
  fits: (value: number) => boolean,
): number | undefined {
  if (fits(to)) return to;
  if (!fits(from)) return undefined;
  let low = 0;
  let high = Math.ceil((to - from) / step);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(from + middle * step)) low = middle;
    else high = middle;
  }
  return from + low * step;
}

export const usesGpu = (spec: SlotSpec): boolean => spec.backend !== 'cpu' && spec.resources.gpus !== 0;
