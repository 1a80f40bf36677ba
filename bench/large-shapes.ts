/** The shapes of generated models for measurements of memory: the layers and heads of real families, with fewer of them. Pure. */
import { f32, u32 } from '../src/models/demo/encode-gguf.ts';
import type { LargeModel, LargeTensor } from './large-model.ts';

interface Sizes {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly headsKv: number;
  readonly headLength: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly format: LargeTensor['format'];
}

/** A dense model in which every layer attends to the whole context. */
export function denseModel(sizes: Sizes): LargeModel {
  return {
    architecture: 'llama',
    vocabulary: sizes.vocabulary,
    metadata: common(sizes),
    tensors: [...outer(sizes), ...layersOf(sizes, (layer) => [...attention(sizes, layer), ...feedForward(sizes, layer)])],
  };
}

/** Five of six layers attend to a window only, as in Gemma 3. */
export function windowModel(sizes: Sizes, window: number): LargeModel {
  return {
    architecture: 'gemma3',
    vocabulary: sizes.vocabulary,
    metadata: { ...common(sizes), 'attention.sliding_window': u32(window) },
    tensors: [
      ...outer(sizes),
      ...layersOf(sizes, (layer) => [
        ...attention(sizes, layer),
        ...feedForward(sizes, layer),
        norm(`blk.${layer}.attn_q_norm.weight`, sizes.headLength),
        norm(`blk.${layer}.attn_k_norm.weight`, sizes.headLength),
        norm(`blk.${layer}.post_attention_norm.weight`, sizes.width),
        norm(`blk.${layer}.post_ffw_norm.weight`, sizes.width),
      ]),
    ],
  };
}

function common(sizes: Sizes): LargeModel['metadata'] {
  return {
    context_length: u32(sizes.context),
    block_count: u32(sizes.layers),
    embedding_length: u32(sizes.width),
    feed_forward_length: u32(sizes.feedForward),
    'attention.head_count': u32(sizes.heads),
    'attention.head_count_kv': u32(sizes.headsKv),
    'attention.key_length': u32(sizes.headLength),
    'attention.value_length': u32(sizes.headLength),
    'attention.layer_norm_rms_epsilon': f32(1e-5),
    'rope.dimension_count': u32(sizes.headLength),
  };
}

function outer({ width, vocabulary, format }: Sizes): readonly LargeTensor[] {
  return [
    { name: 'token_embd.weight', shape: [width, vocabulary], format },
    { name: 'output.weight', shape: [width, vocabulary], format },
    norm('output_norm.weight', width),
  ];
}

function layersOf(sizes: Sizes, tensors: (layer: number) => readonly LargeTensor[]): readonly LargeTensor[] {
  return Array.from({ length: sizes.layers }, (_, layer) => tensors(layer)).flat();
}

function attention(sizes: Sizes, layer: number): readonly LargeTensor[] {
  const { width, format } = sizes;
  const query = sizes.heads * sizes.headLength;
  const keys = sizes.headsKv * sizes.headLength;
  return [
    norm(`blk.${layer}.attn_norm.weight`, width),
    { name: `blk.${layer}.attn_q.weight`, shape: [width, query], format },
    { name: `blk.${layer}.attn_k.weight`, shape: [width, keys], format },
    { name: `blk.${layer}.attn_v.weight`, shape: [width, keys], format },
    { name: `blk.${layer}.attn_output.weight`, shape: [query, width], format },
  ];
}

function feedForward({ width, feedForward: inner, format }: Sizes, layer: number): readonly LargeTensor[] {
  return [
    norm(`blk.${layer}.ffn_norm.weight`, width),
    { name: `blk.${layer}.ffn_gate.weight`, shape: [width, inner], format },
    { name: `blk.${layer}.ffn_up.weight`, shape: [width, inner], format },
    { name: `blk.${layer}.ffn_down.weight`, shape: [inner, width], format },
  ];
}

function norm(name: string, length: number): LargeTensor {
  return { name, shape: [length], format: 'f32' };
}
