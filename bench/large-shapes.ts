/** The shapes of generated models for measurements of memory: the layers and heads of real families, with fewer of them. Pure. */
import { f32, i32s, u32 } from '../toolboxes/demo/encode-gguf.ts';
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

/** A mixture of experts: of the feed-forward layers, `used` of `experts` compute each token. */
export function expertModel(sizes: Sizes, experts: number, used: number): LargeModel {
  const { width, feedForward: inner, format } = sizes;
  return {
    architecture: 'qwen3moe',
    vocabulary: sizes.vocabulary,
    metadata: {
      ...common(sizes),
      expert_count: u32(experts),
      expert_used_count: u32(used),
      expert_feed_forward_length: u32(inner),
    },
    tensors: [
      ...outer(sizes),
      ...layersOf(sizes, (layer) => [
        ...attention(sizes, layer),
        norm(`blk.${layer}.attn_q_norm.weight`, sizes.headLength),
        norm(`blk.${layer}.attn_k_norm.weight`, sizes.headLength),
        norm(`blk.${layer}.ffn_norm.weight`, width),
        { name: `blk.${layer}.ffn_gate_inp.weight`, shape: [width, experts], format: 'f32' },
        { name: `blk.${layer}.ffn_gate_exps.weight`, shape: [width, inner, experts], format },
        { name: `blk.${layer}.ffn_up_exps.weight`, shape: [width, inner, experts], format },
        { name: `blk.${layer}.ffn_down_exps.weight`, shape: [inner, width, experts], format },
      ]),
    ],
  };
}

/** Keys and values compressed into one row per token, as in DeepSeek V2 and later. */
export function latentModel(sizes: Sizes, { rank, rope }: { readonly rank: number; readonly rope: number }): LargeModel {
  const { width, heads, headLength, format } = sizes;
  return {
    architecture: 'deepseek2',
    vocabulary: sizes.vocabulary,
    metadata: {
      ...common(sizes),
      'attention.head_count_kv': u32(1),
      'attention.key_length': u32(rank + rope),
      'attention.value_length': u32(rank),
      'attention.key_length_mla': u32(headLength + rope),
      'attention.value_length_mla': u32(headLength),
      'attention.kv_lora_rank': u32(rank),
      'attention.q_lora_rank': u32(0),
      'rope.dimension_count': u32(rope),
      leading_dense_block_count: u32(sizes.layers),
      expert_count: u32(0),
      expert_used_count: u32(0),
      expert_feed_forward_length: u32(sizes.feedForward),
      expert_shared_count: u32(0),
    },
    tensors: [
      ...outer(sizes),
      ...layersOf(sizes, (layer) => [
        norm(`blk.${layer}.attn_norm.weight`, width),
        { name: `blk.${layer}.attn_q.weight`, shape: [width, heads * (headLength + rope)], format },
        { name: `blk.${layer}.attn_kv_a_mqa.weight`, shape: [width, rank + rope], format },
        norm(`blk.${layer}.attn_kv_a_norm.weight`, rank),
        { name: `blk.${layer}.attn_k_b.weight`, shape: [headLength, rank, heads], format },
        { name: `blk.${layer}.attn_v_b.weight`, shape: [rank, headLength, heads], format },
        { name: `blk.${layer}.attn_output.weight`, shape: [heads * headLength, width], format },
        ...feedForward(sizes, layer),
      ]),
    ],
  };
}

/** A model that keeps a state instead of keys and values, as Mamba does. */
export function recurrentModel(
  sizes: Sizes,
  { inner, state, convolution, rank }: Readonly<Record<'inner' | 'state' | 'convolution' | 'rank', number>>,
): LargeModel {
  const { width, format } = sizes;
  return {
    architecture: 'mamba',
    vocabulary: sizes.vocabulary,
    metadata: {
      ...common(sizes),
      feed_forward_length: u32(0),
      'attention.head_count': u32(0),
      'attention.head_count_kv': u32(0),
      'ssm.conv_kernel': u32(convolution),
      'ssm.inner_size': u32(inner),
      'ssm.state_size': u32(state),
      'ssm.time_step_rank': u32(rank),
    },
    tensors: [
      ...outer(sizes),
      ...layersOf(sizes, (layer) => [
        norm(`blk.${layer}.attn_norm.weight`, width),
        { name: `blk.${layer}.ssm_in.weight`, shape: [width, 2 * inner], format },
        { name: `blk.${layer}.ssm_conv1d.weight`, shape: [convolution, inner], format: 'f32' },
        norm(`blk.${layer}.ssm_conv1d.bias`, inner),
        { name: `blk.${layer}.ssm_x.weight`, shape: [inner, rank + 2 * state], format },
        { name: `blk.${layer}.ssm_dt.weight`, shape: [rank, inner], format },
        norm(`blk.${layer}.ssm_dt.bias`, inner),
        { name: `blk.${layer}.ssm_a`, shape: [state, inner], format: 'f32' },
        norm(`blk.${layer}.ssm_d`, inner),
        { name: `blk.${layer}.ssm_out.weight`, shape: [inner, width], format },
      ]),
    ],
  };
}

/** Every fourth layer attends to the whole context; the others keep the last inputs of a short convolution, as LFM2 does. */
export function mixedModel(sizes: Sizes, convolution: number): LargeModel {
  const { width, headsKv, headLength, format } = sizes;
  const attends = (layer: number): boolean => layer % 4 === 3;
  return {
    architecture: 'lfm2',
    vocabulary: sizes.vocabulary,
    metadata: {
      ...common(sizes),
      'attention.head_count_kv': i32s(Array.from({ length: sizes.layers }, (_, layer) => (attends(layer) ? headsKv : 0))),
      'shortconv.l_cache': u32(convolution),
    },
    tensors: [
      { name: 'token_embd.weight', shape: [width, sizes.vocabulary], format },
      { name: 'output.weight', shape: [width, sizes.vocabulary], format },
      norm('token_embd_norm.weight', width),
      ...layersOf(sizes, (layer) => [
        ...(attends(layer)
          ? [
              ...attention(sizes, layer),
              norm(`blk.${layer}.attn_q_norm.weight`, headLength),
              norm(`blk.${layer}.attn_k_norm.weight`, headLength),
            ]
          : [
              norm(`blk.${layer}.attn_norm.weight`, width),
              { name: `blk.${layer}.shortconv.in_proj.weight`, shape: [width, 3 * width], format },
              { name: `blk.${layer}.shortconv.conv.weight`, shape: [convolution, width], format: 'f32' as const },
              { name: `blk.${layer}.shortconv.out_proj.weight`, shape: [width, width], format },
            ]),
        ...feedForward(sizes, layer),
      ]),
    ],
  };
}
