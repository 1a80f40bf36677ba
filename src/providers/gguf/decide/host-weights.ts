/**
 * Weights that llama.cpp keeps in the memory of the host beside a GPU: the layers that `-ngl` leaves there, experts of
 * `-cmoe` and `-ncmoe`, and tensors of `-ot`. Rules of llama.cpp, `llama_model::load_tensors` and `common/arg.cpp` as
 * of November 2026: `-ngl` counts from the end and takes the output matrix for the last layer; `-ncmoe` counts from
 * the beginning; the first override that matches decides. Pure.
 */
import type { GgufModel } from './gguf-model.ts';
import { MAX_LAYERS } from './layer-memory.ts';

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
