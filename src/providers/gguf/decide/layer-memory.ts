/**
 * Memory per token and per sequence, from the header of a model. Rules of llama.cpp: `load_hparams` of each
 * architecture, `llama_hparams` and `llama_kv_cache`. Pure.
 */
import type { GgufHeader } from './parse-gguf-header.ts';

type KeysAndValues = { readonly keys: number; readonly values: number };

export interface LayerMemory {
  readonly whole: KeysAndValues;
  readonly window: (KeysAndValues & { readonly tokens: number }) | undefined;
  /** Bytes per sequence of any length. */
  readonly stateBytes: number;
}

/** Default period of windows: all but one layer have one. Others need a pattern in the header. */
const WINDOW_PERIODS: Readonly<Record<string, number>> = {
  gemma2: 2,
  gemma3: 6,
  gemma3n: 5,
  'gpt-oss': 2,
  cohere2: 4,
  olmo2: 4,
  exaone4: 4,
  afmoe: 4,
  smallthinker: 4,
  plamo3: 8,
};
const STATE_NUMBER_BYTES = 4;
export const MAX_LAYERS = 1024;

export function layerMemory(header: HeaderValues): LayerMemory | undefined {
  const layers = header.count('block_count');
  const width = header.count('embedding_length');
  if (layers === undefined || width === undefined || layers > MAX_LAYERS) return undefined;
  const isWindow = windowLayers(header);
  const ownLayers = layers - Math.min(layers, header.count('attention.shared_kv_layers') ?? 0);
  const whole = { keys: 0, values: 0 };
  const window = { keys: 0, values: 0 };
  let stateBytes = 0;
  for (let layer = 0; layer < layers; layer += 1) {
    if (isRecurrent(header, layer)) {
      stateBytes += stateOf(header);
      continue;
    }
    // The last layers of some models use the cache of an earlier one.
    if (layer >= ownLayers) continue;
    const inWindow = isWindow(layer);
    const { keys, values } = keysAndValues(header, { layer, width, inWindow });
    const sum = inWindow ? window : whole;
    sum.keys += keys;
    sum.values += values;
  }
  const tokens = header.count('attention.sliding_window') ?? 0;
  return { whole, window: window.keys === 0 ? undefined : { ...window, tokens }, stateBytes };
}

function windowLayers(header: HeaderValues): (layer: number) => boolean {
  const tokens = header.count('attention.sliding_window') ?? 0;
  const key = 'attention.sliding_window_pattern';
  const list = header.list(key);
  const period = header.count(key) ?? WINDOW_PERIODS[header.architecture];
  if (tokens === 0 || (list === undefined && period === undefined)) return () => false;
  if (list !== undefined) return (layer) => list[layer % list.length] === 1;
  return (layer) => period === 0 || (period !== undefined && layer % period < period - 1);
}

function isRecurrent(header: HeaderValues, layer: number): boolean {
  const interval = header.count('full_attention_interval');
  if (interval !== undefined && interval > 0) return (layer + 1) % interval !== 0;
  return (header.atLayer('attention.head_count_kv', layer) ?? header.atLayer('attention.head_count', layer)) === 0;
}

function keysAndValues(
  header: HeaderValues,
  { layer, width, inWindow }: { layer: number; width: number; inWindow: boolean },
): KeysAndValues {
  const heads = header.atLayer('attention.head_count', layer) ?? 1;
  const headsKv = header.atLayer('attention.head_count_kv', layer) ?? heads;
  const headLength = heads === 0 ? 0 : Math.floor(width / heads);
  const lengthOf = (key: 'key_length' | 'value_length'): number =>
    (inWindow ? header.count(`attention.${key}_swa`) : undefined) ?? header.count(`attention.${key}`) ?? headLength;
  const keys = headsKv * lengthOf('key_length');
  // Latent attention computes values from the keys.
  if ((header.count('attention.key_length_mla') ?? 0) > 0) return { keys, values: 0 };
  return { keys, values: headsKv * lengthOf('value_length') };
}

/** Last inputs of the convolution, and the state. */
function stateOf(header: HeaderValues): number {
  const inner = header.count('ssm.inner_size') ?? 0;
  const state = header.count('ssm.state_size') ?? 0;
  const groups = header.count('ssm.group_count') ?? 0;
  const kernel = header.count('ssm.conv_kernel') ?? header.count('shortconv.l_cache') ?? 1;
  const width = header.count('embedding_length') ?? 0;
  const headSize = header.count('wkv.head_size');
  // RWKV keeps the last two inputs, and a matrix per head.
  if (headSize !== undefined) return (2 + headSize) * width * STATE_NUMBER_BYTES;
  const inputs = inner === 0 ? width : inner + 2 * groups * state;
  return (Math.max(0, kernel - 1) * inputs + state * inner) * STATE_NUMBER_BYTES;
}

/** No count in a model is larger, and sums and products of a few stay exact enough. */
const MAX_COUNT = 2 ** 32;

export type HeaderValues = ReturnType<typeof headerValues>;

/** Plausible values of a GGUF header, which may claim anything. Counts and lists are below the architecture. */
export function headerValues({ values, lists }: Pick<GgufHeader, 'values' | 'lists'>) {
  const text = (key: string): string | undefined => {
    const value = values.get(key);
    return typeof value === 'string' ? value : undefined;
  };
  const architecture = text('general.architecture') ?? '';
  const count = (key: string): number | undefined => plausible(values.get(`${architecture}.${key}`));
  const list = (key: string): readonly number[] | undefined => {
    const items = lists.get(`${architecture}.${key}`);
    return items === undefined || items.length === 0 || items.some((item) => plausible(item) === undefined) ? undefined : items;
  };
  return {
    architecture,
    text,
    count,
    list,
    atLayer: (key: string, layer: number): number | undefined => count(key) ?? list(key)?.[layer],
    mean(key: string): number | undefined {
      const items = list(key);
      return count(key) ?? (items === undefined ? undefined : items.reduce((sum, item) => sum + item) / items.length);
    },
    largest(key: string): number | undefined {
      const items = list(key);
      return count(key) ?? (items === undefined ? undefined : Math.max(...items));
    },
  };
}

const plausible = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT ? value : undefined;
