/**
 * A model that says what `demo-fox` says, and has a head that predicts the token after the next one (multi-token prediction) in its file. Pure. It has the architecture
 * of Qwen3.5, one of those that b11669 of llama.cpp drafts with: a layer of linear attention, one of full attention, and the head, which has full attention too.
 */
import { buildVocabulary, CHAT_TEMPLATE, tableTensors } from '../../../toolboxes/demo/demo-chat.ts';
import { encodeGguf, f32, filled, i32s, text, u32, type GgufTensor } from '../../../toolboxes/demo/encode-gguf.ts';
import { FOX } from './tiny-companions.ts';

const WIDTH = 64;
const HEADS = 2;
const HEAD = WIDTH / HEADS;
/** Keys, queries and values of linear attention. */
const MIXED = 2 * HEAD + WIDTH;
const CONVOLUTION = 4;

export function encodePredictingFox(): Uint8Array {
  const model = { name: 'fox with a head', words: FOX, then: 'end' } as const;
  const vocabulary = buildVocabulary(FOX, { end: false, spacePrefix: false });
  const facts = {
    context_length: 4096,
    embedding_length: WIDTH,
    block_count: 3,
    feed_forward_length: WIDTH,
    'attention.head_count': HEADS,
    'attention.head_count_kv': HEADS,
    'attention.key_length': HEAD,
    'attention.value_length': HEAD,
    'rope.dimension_count': HEAD,
    'ssm.conv_kernel': CONVOLUTION,
    'ssm.inner_size': WIDTH,
    'ssm.state_size': HEAD,
    'ssm.time_step_rank': HEADS,
    'ssm.group_count': 1,
    full_attention_interval: 2,
    nextn_predict_layers: 1,
    vocab_size: vocabulary.tokens.length,
  };
  return encodeGguf({
    metadata: [
      ['general.architecture', text('qwen35')],
      ['general.name', text(model.name)],
      ...Object.entries(facts).map(([key, value]) => [`qwen35.${key}`, u32(value)] as const),
      ['qwen35.attention.layer_norm_rms_epsilon', f32(1e-5)],
      ['qwen35.rope.dimension_sections', i32s([6, 5, 5, 0])],
      ...vocabulary.metadata,
      ['tokenizer.chat_template', text(CHAT_TEMPLATE)],
    ],
    tensors: [...tableTensors(model, vocabulary), ...linearLayer('blk.0'), ...fullLayer('blk.1'), ...fullLayer('blk.2'), ...head('blk.2')],
  });
}

/** What each layer has. None adds anything to the state. */
const layer = (name: string): readonly GgufTensor[] => [
  filled(`${name}.attn_norm.weight`, [WIDTH], 1),
  filled(`${name}.post_attention_norm.weight`, [WIDTH], 1),
  filled(`${name}.ffn_gate.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.ffn_up.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.ffn_down.weight`, [WIDTH, WIDTH], 0),
];

/** The queries have their gates beside them. */
const fullLayer = (name: string): readonly GgufTensor[] => [
  ...layer(name),
  filled(`${name}.attn_q.weight`, [WIDTH, 2 * WIDTH], 0),
  filled(`${name}.attn_k.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.attn_v.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.attn_output.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.attn_q_norm.weight`, [HEAD], 1),
  filled(`${name}.attn_k_norm.weight`, [HEAD], 1),
];

const linearLayer = (name: string): readonly GgufTensor[] => [
  ...layer(name),
  filled(`${name}.attn_qkv.weight`, [WIDTH, MIXED], 0),
  filled(`${name}.attn_gate.weight`, [WIDTH, WIDTH], 0),
  filled(`${name}.ssm_conv1d.weight`, [CONVOLUTION, MIXED], 0),
  filled(`${name}.ssm_dt.bias`, [HEADS], 0),
  filled(`${name}.ssm_a`, [HEADS], 0),
  filled(`${name}.ssm_beta.weight`, [WIDTH, HEADS], 0),
  filled(`${name}.ssm_alpha.weight`, [WIDTH, HEADS], 0),
  filled(`${name}.ssm_norm.weight`, [HEAD], 1),
  filled(`${name}.ssm_out.weight`, [WIDTH, WIDTH], 0),
];

/** It sees the next token and the state before it, and takes the token alone, which decides what follows. */
function head(name: string): readonly GgufTensor[] {
  const take = new Float32Array(2 * WIDTH * WIDTH);
  for (let row = 0; row < WIDTH; row += 1) take[row * 2 * WIDTH + row] = 1;
  return [
    { name: `${name}.nextn.eh_proj.weight`, shape: [2 * WIDTH, WIDTH], data: take },
    filled(`${name}.nextn.enorm.weight`, [WIDTH], 1),
    filled(`${name}.nextn.hnorm.weight`, [WIDTH], 1),
  ];
}
